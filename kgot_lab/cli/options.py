"""Options that several commands share, and dataclasses that group them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import typer
from typer.models import OptionInfo

MODEL_FORMS = "local, openai:MODEL, anthropic:MODEL, gemini:MODEL, ollama:MODEL, openrouter:MODEL, http://host/v1#MODEL, or recorded:FILE"
_DOCUMENTS_HELP = "a folder with texts, tables (CSV, Excel), HTML, PDF or Office files, or one such file"
_RECORDING_HELP = "store the model's replies in this file, and reuse those already in it"
_STORE_KINDS = "in_memory (Python), cypher_embedded, sparql_embedded, cypher_server, sparql_server, or fused (three languages at once)"
_LOCATION_HELP = "where the store is: a server's URL (Neo4j's password is taken from KGOT_NEO4J_PASSWORD), or a file to keep the graph in"
_CERTIFY_HELP = "hedge or withhold an answer that its sources do not support; trace and page still show it"
_GRAPH_HELP = "a graph to start from: a graph file, a trace, a store's file, or the address of a server with --namespace"


_Command = Callable[..., None]


def option(help: str, *flags: str, default: Any = None, **more: Any) -> Any:
    """Declare an option of a command or of a group of options.

    Without a flag, `with_options` names it by its parameter.
    """
    return typer.Option(default, *flags, help=help, **more)


def argument(help: str, default: Any = ...) -> Any:
    """Declare an argument of a command."""
    return typer.Argument(default, help=help)


def with_options(command: _Command) -> _Command:
    """Turn each parameter whose type is a dataclass into one command-line option per field.

    Typer builds a command from its signature. It gets a flat signature, and the command is called with
    dataclasses built from the values.
    """
    hints = get_type_hints(command)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    flat: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            flat += group_parameters(groups[name])
        else:
            flat.append(typer_parameter(name, hints[name], parameter.default))

    def run(**values: Any) -> None:
        grouped = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **grouped)

    return set_signature(run, flat, command.__name__, command.__doc__)


def set_signature(run: _Command, flat: list[inspect.Parameter], name: str, help: str | None) -> _Command:
    """Give a function the name, the help and the parameters that typer reads as if they were written in it."""
    run.__name__, run.__doc__ = name, help
    run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return run


def group_parameters(group: type) -> list[inspect.Parameter]:
    """List the options of a group as parameters."""
    types = get_type_hints(group)
    return [typer_parameter(field.name, types[field.name], field.default) for field in fields(group)]


def typer_parameter(name: str, type: Any, default: Any) -> inspect.Parameter:
    """Make a parameter of a command. Its flag is its name unless its option has one."""
    if isinstance(default, OptionInfo) and not default.param_decls:
        default = copy(default)
        default.param_decls = (_flag(name, default),)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=type)


def _flag(name: str, info: Any) -> str:
    return str((info.param_decls or ("--" + name.replace("_", "-"),))[0])


def options_by_flag(*groups: Any) -> dict[str, Any]:
    """Return the values of groups of options by the names of their flags, as a command line takes them."""
    given = (
        (_flag(each.name, each.default), getattr(group, each.name))
        for group in groups
        for each in fields(group)
    )
    return {flag.removeprefix("--").replace("-", "_"): value for flag, value in given}


MODEL = option(f"by default local; {MODEL_FORMS}", "--model")
EXECUTION = option("another model, to choose tools and write arithmetic", "--execution-model")
VISION = option("a model that answers questions about images", "--vision-model")
MODELS_FILE = option("a YAML file of models, to be named by --model", "--models")
SEARCH_EMBEDDER = option("embedder of searches: minilm (default if installed), none (words only), or another")
MAX_CALLS = option("stop before the whole run makes more model calls", "--max-calls")
_PRESETS = "paths or local (for small models), reference (published defaults), or auto (paths or reference)"
PRESET = option(f"limits: {_PRESETS}", "--preset")
SET_LIMIT = option("a limit: NAME=VALUE, as in steps=3 or reply_tokens.vote=500; repeat for more", "--set")
DOCUMENTS_FIRST = argument(_DOCUMENTS_HELP)
CONFIG_FILE = option("a YAML file with any of these; what is given here overrides it", "--config")
DOCUMENTS = option(_DOCUMENTS_HELP, "--documents")
REQUIRED_DOCUMENTS = option(_DOCUMENTS_HELP, "--documents", default=...)
ATTACH = option("a file that belongs to the question; repeat for more", "--attach")
WEB = option("tools may access the web", "--web", default=False)
MIRROR_FOLDER = option("a folder of pages that replaces the web", "--mirror")
ENGINE_NAME = option("search engine: serpapi, tavily, brave or ddgs; by default one with a key", "--engine")
AS_OF = option("the memory at this time, such as 2026-11-23; nothing is added", "--as-of")
UNSAFE = option("run the model's statements without a sandbox, with your rights", "--unsafe", default=False)
TRACE_FILE = option("where the run is written, event by event (default: runs/TIME.jsonl)", "--trace")
RECORDING = option(_RECORDING_HELP, "--recording")
HTML = option("write the run as one HTML page", "--html")
AS_JSON = option("print the result as JSON; progress goes to standard error", "--json", default=False)


@dataclass(frozen=True)
class BudgetOptions:
    """Options for the budget."""

    max_calls: int | None = MAX_CALLS
    max_seconds: float | None = option("stop before models work longer for the whole run, in seconds")
    max_dollars: float | None = option("stop before the whole run costs more, in US dollars")


@dataclass(frozen=True)
class PlannerOptions(BudgetOptions):
    """Options for the model and its budget."""

    model: str | None = MODEL
    models: Path | None = MODELS_FILE


@dataclass(frozen=True)
class ModelOptions(PlannerOptions):
    """Options for the models and their budget."""

    execution: str | None = EXECUTION


@dataclass(frozen=True)
class ResumedModelOptions(ModelOptions):
    """Options for the models that continue a run."""

    model: str | None = option(f"by default the model of the run; {MODEL_FORMS}")


@dataclass(frozen=True)
class LimitOptions:
    """How long the loop may try."""

    preset: str | None = PRESET
    settings: list[str] | None = SET_LIMIT
    config: Path | None = CONFIG_FILE


@dataclass(frozen=True)
class SourceOptions:
    """Where facts come from."""

    documents: Path | None = DOCUMENTS
    attach: list[Path] | None = ATTACH
    web: bool = WEB
    mirror: Path | None = MIRROR_FOLDER


@dataclass(frozen=True)
class ToolOptions(SourceOptions):
    """Where facts come from, and by which tools."""

    tools: list[str] | None = option("a tool by name; repeat for more; all for every tool", "--tool")
    engine: str | None = ENGINE_NAME
    vision: str | None = VISION


@dataclass(frozen=True)
class LocationOptions:
    """Options for the store in which a run continues."""

    store: str | None = option(f"where the graph grows: {_STORE_KINDS}")
    at: str | None = option(_LOCATION_HELP)
    namespace: str | None = option("which graph of a server; by default a new one")
    unsafe: bool = UNSAFE


@dataclass(frozen=True)
class StoreOptions(LocationOptions):
    """Options for the store of a graph, and its initial content."""

    keep: bool = option("start from the graph in the store, and add to it", default=False)
    wipe: bool = option("empty the store, or its namespace, first", default=False)
    graph: str | None = option(_GRAPH_HELP)
    memory: str | None = option("a file of claims, or postgresql://HOST/NAME, to start from and add to")
    user: str | None = option("start from what this user said in --memory; nothing is added")
    as_of: str | None = AS_OF


@dataclass(frozen=True)
class ResultOptions:
    """Options for the output."""

    recording: Path | None = RECORDING
    html: Path | None = HTML
    as_json: bool = AS_JSON
    save_graph: Path | None = option("write the final graph to this file")
    snapshots: Path | None = option("a folder for the graph after every write")
    certify: bool = option(_CERTIFY_HELP, default=False)


@dataclass(frozen=True)
class RunOptions(ResultOptions):
    """Options for the output, including the run itself."""

    trace: Path | None = TRACE_FILE
    parallel: int | None = option("tool calls, and calls of a model on a server, that run at once (4)", min=1)
    approve: bool = option("ask before every tool call, write and paid call", "--approve", default=False)
    mode: str | None = option("a mode from an installed package, instead of the preset's")


_CONFIGURATION_FIELDS = {  # the field of a configuration that an option overrides
    **{name: name for name in ("documents", "model", "models", "preset", "snapshots", "memory", "user", "as_of", "certify")},
    **{name: f"store.{name}" for name in ("keep", "wipe", "graph", "at", "namespace", "unsafe")},
    **{name: f"tools.{name}" for name in ("web", "mirror", "engine")},
    **{f"max_{name}": f"budget.{name}" for name in ("calls", "seconds", "dollars")},
    **{name: f"run.{name}" for name in ("approve", "parallel", "mode")},
    "execution": "execution_model", "tools": "tools.names", "vision": "tools.vision_model",
    "store": "store.kind", "save_graph": "store.save",
}  # fmt: skip


def configuration_flags(*groups: Any) -> dict[str, Any]:
    """Return the configuration fields that groups of options override, by dotted name.

    Raises BadInput for an unknown limit, and for a budget that allows nothing.
    """
    from kgot_lab.cli.configuration import parse_limits
    from kgot_lab.cli.terminal import make_budget

    values = {field.name: getattr(group, field.name) for group in groups for field in fields(group)}
    flags = {field: values[name] for name, field in _CONFIGURATION_FIELDS.items() if name in values}
    if names := flags.get("tools.names"):
        flags["tools.names"] = "all" if names == ["all"] else tuple(names)
    for group in groups:
        if isinstance(group, LimitOptions):
            flags["limits"] = parse_limits(group.settings or [])
        if isinstance(group, BudgetOptions):
            make_budget(group.max_calls, group.max_seconds, group.max_dollars)
    return flags
