"""How errors are told at the doors: a status, a word for programs, a sentence that says what to do; nothing
of the inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from kgot_lab.errors import BadInput, LabError, StoreUnavailable
from kgot_lab.experts.error_messages import MODEL_ERRORS, failure_message
from kgot_lab.experts.http.auth import error_body
from kgot_lab.experts.http.schemas import ApiErrorBody
from kgot_lab.experts.http.tokens import Tenant
from kgot_lab.experts.repository import NotFound

_DESCRIPTIONS = {
    400: "The request is no request",
    401: "No token, or none that holds",
    403: "The caller may not do this",
    408: "The body did not come in time",
    413: "The body is too large",
    415: "The body is not JSON",
    421: "The server is not called that",
    422: "What was sent cannot be used",
    429: "Too often",
    503: "Busy, or a part that is needed is away: try again later",
}
ERRORS: dict[int | str, dict[str, Any]] = {  # of every route, for OpenAPI
    status: {"model": ApiErrorBody, "description": said} for status, said in _DESCRIPTIONS.items()
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"model": ApiErrorBody, "description": "There is none, or it is not the caller's"}
}
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


Caller = Annotated[Tenant, Depends(tenant)]
Admin = Annotated[Tenant, Depends(may_change)]
ExpertId = Annotated[str, Path(max_length=200, description="the id of an expert", examples=["expert_cook"])]


def error_response(error: LabError) -> tuple[int, str, str]:
    """The status, the word and the sentence of an error of ours."""
    status, code = next((told for kind, told in _STATUSES.items() if isinstance(error, kind)), _UNAVAILABLE)
    words_for_caller = isinstance(error, BadInput | Forbidden | TooBusy | MarketAway | TurnFailed)
    return status, code, str(error) if words_for_caller else failure_message(error)


_STATUSES: Mapping[type[LabError], tuple[int, str]] = {  # the first that fits
    NotFound: (404, "not_there"),
    Forbidden: (403, "forbidden"),
    TooBusy: (503, "too_busy"),
    MarketAway: (503, "market_away"),
    TurnFailed: (503, "model_away"),
    BadInput: (422, "bad_input"),
    StoreUnavailable: (503, "store_away"),
    **dict.fromkeys(MODEL_ERRORS, (503, "model_away")),
}
_UNAVAILABLE = 503, "unavailable"


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
