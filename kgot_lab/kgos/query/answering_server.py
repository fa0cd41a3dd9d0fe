"""An MCP server that answers each request, with a reason in plain words if it cannot be used."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Any

import anyio
from mcp import types
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from kgot_lab.arguments import is_plain_text
from kgot_lab.errors import BadInput, require_known, short_repr
from kgot_lab.kgos.query.mcp_server import replay_body
from kgot_lab.kgos.query.question_arguments import resolve_aliases
from kgot_lab.llm.structured import field_problem

_NO_MESSAGE, _FORM = "this is no JSON-RPC message", "give jsonrpc '2.0', id, method and params"
_DRAIN_SECONDS = 60  # in which requests are answered after the end of the input


class AnsweringServer(MCPServer[Any]):
    """An MCP server that names unknown and wrong arguments, and leaves no request without an answer."""

    def __init__(self, name: str, **options: Any):
        super().__init__(name, **options)
        self.route: Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]] = lambda name, given: (
            name,
            given,
        )
        self._lowlevel_server.middleware.append(_explain_parameters)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Any:
        """Call a tool, or what `route` returns for it.

        Common other names of arguments are understood, and numbers for texts. Raises ToolError for an argument that
        the tool does not take, or of another type.
        """
        name, arguments = self.route(name, arguments)
        known = {tool.name: tool.input_schema.get("properties", {}) for tool in await self.list_tools()}
        try:
            require_known("tool", known, name)
            given = resolve_aliases(name, arguments, known[name])
            require_known(f"argument of {name}", known[name], *given)
            for key, value in given.items():
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                if is_number and known[name][key].get("type") == "string":
                    given[key] = str(value)
            return await super().call_tool(name, given, context)
        except BadInput as error:
            raise ToolError(str(error)) from None
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise ToolError(str(error.__cause__ or error)) from None  # without the protocol's own words
            field, problem = field_problem(error.__cause__)
            raise ToolError(f"the argument {field!r} of {name}: {problem}") from None

    async def get_prompt(self, name: str, arguments: Any = None, context: Any = None) -> Any:
        """Refuse a prompt, since there are none."""
        problem = f"there is no prompt {short_repr(name)}: this server has tools only, which tools/list names"
        raise MCPError(types.INVALID_PARAMS, problem)

    async def run_stdio_async(self) -> None:
        """Serve standard input and output.

        A line that is no message gets an error, since its sender would wait for ever. A call that changes something
        waits for the answer of the one before it, and the end of the input for all answers.
        """
        hints = {tool.name: tool.annotations for tool in await self.list_tools()}
        changing = [name for name, hint in hints.items() if hint and hint.destructive_hint]
        calls = _OpenCalls(lambda name: self.route(name, {})[0] in changing)
        async with stdio_server() as (messages, answers), anyio.create_task_group() as tasks:
            accepted, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

            waits, waiting = anyio.create_memory_object_stream[SessionMessage](inf)

            async def receive() -> None:
                async with accepted, anyio.create_task_group() as changes:
                    changes.start_soon(change)
                    async for message in messages:
                        if refusal := _refusal(getattr(message, "message", message)):
                            await answers.send(SessionMessage(refusal))
                        else:
                            await (waits if await calls.begin(message) else accepted).send(message)
                    with anyio.move_on_after(_DRAIN_SECONDS):
                        await calls.wait_while(lambda: bool(calls.open))
                    changes.cancel_scope.cancel()

            async def change() -> None:
                async for message in waiting:
                    if await calls.take_turn(getattr(message.message, "id", None)):
                        await accepted.send(message)

            async def reply() -> None:
                async with answers:
                    async for answer in outgoing:
                        await answers.send(answer)
                        await calls.end(getattr(answer.message, "id", None))

            tasks.start_soon(receive)
            tasks.start_soon(reply)
            server = self._lowlevel_server
            await server.run(received, sent, server.create_initialization_options())


async def _explain_parameters(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """Handle a request, and say which of its parameters is wrong."""
    try:
        return await call_next(ctx)
    except ValidationError as error:
        problem = ": ".join(filter(None, field_problem(error)))
        raise MCPError(types.INVALID_PARAMS, f"wrong parameters of {ctx.method}: {problem}") from None


class ExplainedBodies:
    """An application that says in one sentence of a body that is no message what it should be."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        body = await Request(scope, receive).body()
        try:
            refusal = _refusal(types.jsonrpc_message_adapter.validate_json(body, by_name=False))
        except ValidationError as error:
            refusal = _refusal(error)
        if refusal is not None:
            await JSONResponse(refusal.model_dump(), 400)(scope, receive, send)
            return
        await self._app(scope, replay_body(body, receive), send)


class _OpenCalls:
    """The requests that are not answered yet, and whether each changes something now."""

    def __init__(self, changes: Callable[[str], bool]):
        self._changes, self._answered = changes, anyio.Condition()
        self.open: dict[object, bool] = {}

    async def begin(self, message: SessionMessage | Exception) -> bool:
        """Note a request, or that one is cancelled. Return whether it waits, as it calls a tool that changes something."""
        request = getattr(message, "message", None)
        given = getattr(request, "params", None) or {}
        if isinstance(request, types.JSONRPCRequest):
            self.open[request.id] = False
            return request.method == "tools/call" and self._changes(str(given.get("name")))
        if isinstance(request, types.JSONRPCNotification) and request.method == "notifications/cancelled":
            await self.end(given.get("requestId"))
        return False

    async def take_turn(self, id: object) -> bool:
        """Wait until no call changes something, and return whether this one does now, and was not cancelled."""
        await self.wait_while(lambda: any(self.open.values()))
        if id in self.open:
            self.open[id] = True
        return id in self.open

    async def end(self, id: object) -> None:
        """Forget a request, which is answered or never will be."""
        async with self._answered:
            self.open = {other: changes for other, changes in self.open.items() if other != id}
            self._answered.notify_all()

    async def wait_while(self, is_so: Callable[[], bool]) -> None:
        """Wait for answers while a condition holds."""
        async with self._answered:
            while is_so():
                await self._answered.wait()


def _refusal(message: object) -> types.JSONRPCError | None:
    """Return the answer to what is no message, with the id of the request if it can be read, or else None.

    A request without an id of the right type, which the protocol takes for a notification, is refused too.
    """
    id, code = None, types.INVALID_REQUEST
    if isinstance(message, ValidationError):
        problem = message.errors(include_url=False)[0]
        with suppress(AttributeError, TypeError, ValueError):
            given = problem["input"]
            id = (json.loads(given) if isinstance(given, str | bytes) else given).get("id")
        if isinstance(id, bool) or not isinstance(id, int | str) or not is_plain_text(str(id)):
            id = None
        is_no_json = problem["type"] == "json_invalid"
        code = types.PARSE_ERROR if is_no_json else code
        reason = f", or holds half a surrogate pair: {problem['msg']}" if is_no_json else f": {_FORM}"
        reason = _NO_MESSAGE + reason
    elif isinstance(message, types.JSONRPCNotification) and not message.method.startswith("notifications/"):
        reason = f"{short_repr(message.method)} has no id that is a text or a whole number: {_FORM}"
    else:
        return None
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=reason))
