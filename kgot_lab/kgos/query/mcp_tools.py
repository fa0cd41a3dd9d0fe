"""Tools of the loop for assistants, by the Model Context Protocol: what a character knows of a world is the
first of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from kgot_lab import __version__
from kgot_lab.errors import NotInstalled
from kgot_lab.kgos.query.mcp_server import error_message
from kgot_lab.text.fence import fenced
from kgot_lab.tools.tool import TextTool

if TYPE_CHECKING:
    from mcp.server import MCPServer


def tool_server(tools: Sequence[TextTool], *, name: str, instructions: str = "") -> MCPServer[Any]:
    """A server of some tools that is not yet running; dots of their names are underscores, since many
    assistants take no dots.

    What a tool returns was found outside and comes behind a fence. Raises NotInstalled without the protocol's
    package.
    """
    try:
        from mcp.server import MCPServer
    except ImportError:
        raise NotInstalled("serve", "the Model Context Protocol") from None
    from mcp.types import ToolAnnotations

    server: MCPServer[Any] = MCPServer(
        "kgot-lab", title=name, version=__version__, instructions=instructions, log_level="WARNING"
    )
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for tool in tools:
        server.add_tool(
            _asked(tool), name=tool.name.replace(".", "_"), description=tool.description, annotations=reads
        )
    return server


def _asked(tool: TextTool) -> Callable[..., str]:
    """A function that the protocol reads as if the arguments of the tool were written in it."""

    def ask(**given: str) -> str:
        return error_message(lambda: fenced(tool(**given).text, tool.name))

    keyword, text = inspect.Parameter.KEYWORD_ONLY, Annotated
    required = [
        inspect.Parameter(name, keyword, annotation=text[str, Field(description=about)])
        for name, about in tool.takes.items()
    ]
    others = [
        inspect.Parameter(name, keyword, default="", annotation=text[str, Field(description=about)])
        for name, about in tool.may.items()
    ]
    ask.__signature__ = inspect.Signature([*required, *others], return_annotation=str)  # type: ignore[attr-defined]
    ask.__annotations__ = {each.name: each.annotation for each in (*required, *others)} | {"return": str}
    ask.__name__, ask.__doc__ = tool.name.replace(".", "_"), tool.description
    return ask
