"""An MCP server that answers each request, with a reason in plain words if it cannot be used."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from kgot_lab.arguments import is_plain_text
from kgot_lab.errors import BadInput, require_known
from kgot_lab.llm.structured import field_problem


class AnsweringServer(MCPServer[Any]):
    """An MCP server that names unknown and wrong arguments, and leaves no request without an answer."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Any:
        """Call a tool. Raises ToolError for an argument that it does not take, or of another type."""
        known = {tool.name: tool.input_schema.get("properties", {}) for tool in await self.list_tools()}
        try:
            require_known(f"argument of {name}", known.get(name, arguments), *arguments)
            return await super().call_tool(name, arguments, context)
        except BadInput as error:
            raise ToolError(str(error)) from None
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            field, problem = field_problem(error.__cause__)
            raise ToolError(f"the argument {field!r} of {name}: {problem}") from None

    async def run_stdio_async(self) -> None:
        """Serve standard input and output.

        A line that is no message gets an error, since its sender would wait for ever.
        """
        async with stdio_server() as (messages, answers), anyio.create_task_group() as tasks:
            accepted, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)

            async def receive() -> None:
                async with accepted:
                    async for message in messages:
                        if isinstance(message, ValidationError):
                            await answers.send(SessionMessage(_parse_error(message)))
                        else:
                            await accepted.send(message)

            tasks.start_soon(receive)
            server = self._lowlevel_server
            await server.run(received, answers, server.create_initialization_options())


def _parse_error(error: ValidationError) -> JSONRPCError:
    """Return the answer to a line that is no message, with the id of the request if it can be read."""
    problem, id = error.errors(include_url=False)[0], None
    with suppress(AttributeError, TypeError, ValueError):
        id = json.loads(problem["input"]).get("id")
    if not isinstance(id, int | str) or not is_plain_text(str(id)):
        id = None
    reason = f"this is no JSON-RPC message, or holds half a surrogate pair: {problem['msg']}"
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=PARSE_ERROR, message=reason))
