"""The public interface of the package as text: the Python API, the commands, the REST routes and the MCP
tools.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mcp.client import Client

import kgot_lab
from kgot_lab.cli.app import app as command_line
from kgot_lab.cli.serve import character_server
from kgot_lab.domains import npc
from kgot_lab.experts.federation.delegation import Federation
from kgot_lab.experts.federation.signing import Peers, open_nonces
from kgot_lab.experts.http.mcp import expert_tools
from kgot_lab.experts.http.responses import StreamLimiter
from kgot_lab.experts.http.server import expert_app, pages_router
from kgot_lab.experts.http.sharing_routes import federation_router
from kgot_lab.experts.learning.ledger import open_proposals
from kgot_lab.experts.learning.reviewing import LearnedGraphs
from kgot_lab.kgos.editing import Editor
from kgot_lab.kgos.query.mcp_server import graph_server, memory_server
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.memory.user_memory import open_memory
from support.expert_server import expert_office
from support.federation import new_instance_key


def interface() -> str:
    """The whole public interface, one line an item, sorted."""
    parts = {
        "Python: import kgot_lab": api_lines(),
        "Command line: kgot-lab": command_lines(typer.main.get_command(command_line), "kgot-lab"),
        "REST: kgot-lab serve": route_lines(),
        "MCP: kgot-lab serve, kgot-lab mcp": tool_lines(),
    }
    return "\n".join(f"# {title}\n\n" + "\n".join(lines) + "\n" for title, lines in parts.items())


def api_lines() -> Iterator[str]:
    for name in sorted(kgot_lab.__all__):
        found = getattr(kgot_lab, name)
        if inspect.ismodule(found):
            yield from (f"{name}.{each}{signature(getattr(found, each))}" for each in sorted(found.__all__))
            continue
        yield name + signature(found)
        if inspect.isclass(found):
            yield from (f"    {line}" for line in members(found))


def members(owner: type) -> Iterator[str]:
    """The public methods and properties of a class, those of its bases in the package included."""
    for name, value in sorted(inspect.getmembers_static(owner)):
        home = next((each for each in owner.__mro__ if name in vars(each)), object)
        if name.startswith("_") or not home.__module__.startswith("kgot_lab"):
            continue
        if isinstance(value, staticmethod | classmethod):
            yield f"{type(value).__name__} {name}{signature(getattr(owner, name))}"
        elif inspect.isfunction(value):
            yield name + signature(value)
        elif not dataclasses.is_dataclass(owner) or name not in owner.__dataclass_fields__:
            yield name


def signature(thing: Any) -> str:
    """The parameters with their defaults; types are left to mypy."""
    try:
        found = inspect.signature(thing)
    except ValueError:  # an exception takes what Exception takes
        return "(...)"
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty, default=shown_default(parameter.default))
        for parameter in found.parameters.values()
    ]
    return str(inspect.Signature(plain))


class Shown:
    """A default whose repr is short and the same on every computer."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def shown_default(value: Any) -> Any:
    if value is inspect.Parameter.empty or isinstance(value, str | int | float | bool | None | tuple):
        return value
    name = (
        getattr(value, "__name__", type(value).__name__)
        .strip("<>")
        .replace("_HAS_DEFAULT_FACTORY_CLASS", "factory")
    )
    return Shown(f"<{name}>")


def command_lines(command: Any, path: str) -> Iterator[str]:
    """A line for each command, and below it one for each of its arguments and options."""
    yield f"{path}{' (hidden)' if command.hidden else ''}"
    for param in command.params:
        if param.param_type_name == "argument":
            yield f"    {param.name.upper()}: {kind(param)}"
        else:
            yield f"    {'/'.join((*param.opts, *param.secondary_opts))}: {kind(param)}"
    if hasattr(command, "list_commands"):
        context = typer.Context(command)
        for name in sorted(command.list_commands(context)):
            yield from command_lines(command.get_command(context, name), f"{path} {name}")


def kind(parameter: Any) -> str:
    """What a parameter takes: nothing, one value or several, whether it is required, and a plain default."""
    several = getattr(parameter, "multiple", False) or parameter.nargs == -1
    words = ["flag" if getattr(parameter, "is_flag", False) else "values" if several else "value"]
    words += ["required"] if parameter.required else []
    default = parameter.default
    if isinstance(default, str | int | float | Path) and not isinstance(default, bool) and str(default):
        words.append(f"default {default}")
    return ", ".join(words)


def route_lines() -> Iterator[str]:
    """A line for each method of each path: the parameters, and the fields of its body ("*" where required)."""
    service = expert_office()
    with tempfile.TemporaryDirectory() as folder:
        service.market = Path(folder)
        app = expert_app(service, learned=LearnedGraphs(service, open_proposals()))
    told = app.openapi()
    for path, methods in sorted(told["paths"].items()):
        for method, operation in sorted(methods.items()):
            taken = [
                f"{each['in']}:{each['name']}{'*' * each['required']}"
                for each in operation.get("parameters", [])
            ]
            body = operation.get("requestBody", {}).get("content", {})
            taken += [
                f"body:{field}" for content in body.values() for field in fields(content["schema"], told)
            ]
            answers = " ".join(sorted(operation["responses"]))
            yield f"{method.upper()} {path} ({', '.join(taken)}) -> {answers}"
    federation = Federation(new_instance_key(), Peers(), open_nonces(":memory:"))
    more = (pages_router(), federation_router(service, StreamLimiter(1, 1), federation))
    hidden = [*app.router.routes, *(route for router in more for route in router.routes)]
    for route in sorted(hidden, key=lambda each: getattr(each, "path", "")):
        if not getattr(route, "include_in_schema", True):
            yield f"{' '.join(sorted(route.methods))} {route.path}"


def fields(schema: dict[str, Any], told: dict[str, Any]) -> list[str]:
    """The names of an object's properties in JSON Schema, "*" behind those required; else its type."""
    if "$ref" in schema:
        return fields(told["components"]["schemas"][schema["$ref"].rpartition("/")[2]], told)
    if "properties" in schema:
        return [name + "*" * (name in schema.get("required", [])) for name in schema["properties"]]
    return [schema.get("type", "any")]


def tool_lines() -> Iterator[str]:
    """The tools and resources of each MCP server, with the names of their arguments."""
    service = expert_office()
    yield from server_lines("experts", expert_tools(service, lambda: "local", StreamLimiter(1, 1)))
    graph = cookbook()
    yield from server_lines("graph", graph_server(graph, editor=Editor(graph, by="assistant")))
    with tempfile.TemporaryDirectory() as folder, npc.open_world(Path(folder) / "world.db") as world:
        one = npc.Entity("npc", "Ilse")
        world.add([one], [])
        yield from server_lines("character", character_server(world, one))
    with open_memory(user="ana", embedder=None) as memory:
        yield from server_lines("memory", memory_server(memory, writes=True))


def server_lines(name: str, server: Any) -> list[str]:
    async def listed() -> tuple[Any, Any, Any]:
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            resources = (await client.list_resources()).resources
            return tools, resources, (await client.list_resource_templates()).resource_templates

    tools, resources, templates = asyncio.run(listed())
    lines = [f"{name}: {tool.name}({', '.join(fields(tool.input_schema, {}))})" for tool in tools]
    lines += [f"{name}: {resource.uri}" for resource in resources]
    return sorted(lines + [f"{name}: {template.uri_template}" for template in templates])
