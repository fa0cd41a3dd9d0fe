"""How errors are told at the doors: a status, a word for programs, a sentence that says what to do; nothing
of the inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from kgot_lab.errors import (
    BadInput,
    LabError,
    LLMError,
    ModelMissing,
    NotInstalled,
    OutOfMemory,
    StoreUnavailable,
)
from kgot_lab.experts.error_messages import failure_message
from kgot_lab.experts.http.auth import error_body
from kgot_lab.experts.http.schemas import ApiErrorBody
from kgot_lab.experts.http.tokens import Tenant
from kgot_lab.experts.repository import NotFound

_SAID = {
    400: "The request is no request",
    401: "No token, or none that holds",
    403: "The caller may not do this",
    404: "There is none, or it is not the caller's",
    408: "The body did not come in time",
    413: "The body is too large",
    415: "The body is not JSON",
    421: "The server is not called that",
    422: "What was sent cannot be used",
    429: "Too often",
    503: "Busy, or a part that is needed is away: try again later",
}
_ALWAYS = (400, 401, 403, 408, 413, 415, 421, 422, 429, 503)
_LONGEST = 300  # characters of a sentence that may repeat what was sent


class Forbidden(LabError):
    """What this caller may not do."""


class TooBusy(LabError):
    """No more chats may begin just now."""

    def __init__(self) -> None:
        super().__init__("too many chats are going on: try again in a moment")


class TurnFailed(LabError):
    """There is no answer; its words are for the caller, and the reason was logged where it was known."""


class MarketAway(LabError):
    """The marketplace of the server gives nothing that can be used; its words are for the caller."""


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, as OpenAPI tells them."""
    return {
        status: {"model": ApiErrorBody, "description": _SAID[status]}
        for status in sorted({*_ALWAYS, *statuses})
    }


def tenant(request: Request) -> Tenant:
    """Who asks; the guard has seen to it that there is somebody."""
    found: Tenant | None = request.scope.get("tenant")
    if found is None:
        raise Forbidden("this needs a token")
    return found


def may_change(request: Request) -> Tenant:
    """Who asks, if they may change experts."""
    found = tenant(request)
    if found.role != "admin":
        raise Forbidden("only an admin changes experts: ask for a token of that role")
    return found


def error_response(error: LabError) -> tuple[int, str, str]:
    """The status, the word and the sentence of an error of ours."""
    match error:
        case NotFound():
            return 404, "not_there", str(error)
        case Forbidden():
            return 403, "forbidden", str(error)
        case TooBusy():
            return 503, "too_busy", str(error)
        case MarketAway():
            return 503, "market_away", str(error)
        case TurnFailed():
            return 503, "model_away", str(error)
        case BadInput():
            return 422, "bad_input", str(error)
        case StoreUnavailable():
            return 503, "store_away", failure_message(error)
        case LLMError() | ModelMissing() | NotInstalled() | OutOfMemory():
            return 503, "model_away", failure_message(error)
        case _:
            return 503, "unavailable", failure_message(error)


def tell_errors(app: FastAPI) -> None:
    """Have an application tell errors so."""

    @app.exception_handler(LabError)
    async def ours(request: Request, error: LabError) -> JSONResponse:
        return _told(request, *error_response(error))

    @app.exception_handler(RequestValidationError)
    async def unfit(request: Request, error: RequestValidationError) -> JSONResponse:
        return _told(request, 422, "bad_input", _unfit(error.errors()[0]))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        code = {404: "not_there", 405: "wrong_method"}.get(error.status_code, "refused")
        return _told(request, error.status_code, code, str(error.detail), dict(error.headers or {}))


def _unfit(first: Mapping[str, Any]) -> str:
    """What is wrong with a request: which field, and why."""
    if first["type"] == "json_invalid":
        return "the body is no JSON"
    is_object = first["type"] in ("dict_type", "model_attributes_type")
    said = "it has to be a JSON object" if is_object else str(first["msg"]).removeprefix("Value error, ")
    where = ".".join(str(step) for step in first["loc"] if step != "body")
    return f"{where[:_LONGEST]}: {said}" if where else f"the body: {said}"


def _told(
    request: Request, status: int, code: str, why: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    why = why.encode(
        "utf-8", "replace"
    ).decode()  # it may repeat half of a surrogate pair, which no answer can hold
    more = {"retry-after": "5"} if status == 503 else {}
    return JSONResponse(
        error_body(request.url.path, status, code, why), status, headers={**(headers or {}), **more}
    )
