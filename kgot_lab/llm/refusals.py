"""Why a request to a server failed, by what the client raises and what the answer holds, and whether another may succeed."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kgot_lab.http.bounded import UnusableBody
from kgot_lab.http.proxies import proxy_variable, through_proxy
from kgot_lab.llm.manner import Refusal, asked_wait
from kgot_lab.types import Json

_PASSING = {408, 409, 429}  # below 500, what another try may mend
_GATEWAY_TIMEOUTS = {504, 524}  # what stands before a server gave up on it; the second is Cloudflare's


@dataclass(frozen=True)
class Sending:
    """Where a request was sent, how many seconds it had, and how long a server may ask to wait."""

    address: str
    seconds: float
    longest_asked: float


def refusal_of(error: Exception, sending: Sending) -> Refusal:
    """What an error of the client means for a request."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        return Refusal(f"no answer within {sending.seconds:.3g} s", again=True, perhaps_charged=_arrived(error))
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    if isinstance(cause, UnusableBody):  # it came, and was perhaps charged
        return Refusal(str(cause), perhaps_charged=True, advice="Look at the server, or use another one.")
    if isinstance(error, openai.APIConnectionError):
        return _no_connection(error, sending.address)
    if isinstance(error, openai.APIStatusError):
        return _status_refusal(error, sending.longest_asked)
    if isinstance(error, UnicodeEncodeError):  # half of a surrogate pair
        return Refusal(f"the prompt cannot be sent: {error}", advice="Take that letter out of the prompt. Nothing was sent.")
    return Refusal(f"the answer is not a chat completion: {error}", perhaps_charged=True)  # it is not JSON, or nested without end


def broken_off(refusal: Refusal, error: Exception | None = None) -> Refusal:
    """The same of an answer of which something was told already: nothing mends that, and it may be charged."""
    import openai

    reason = refusal.reason
    if isinstance(error, openai.APITimeoutError):
        reason = f"it was not complete in time ({reason})"
    elif isinstance(error, openai.APIConnectionError):
        reason = f"the connection broke ({error.__cause__ or error})"
    advice = refusal.advice or ("" if refusal.status else "What came is not the whole answer: ask again.")
    return replace(refusal, reason=reason, again=False, wait=None, advice=advice, broke_off=True)


def refused_in_answer(answer: Json) -> Refusal | None:
    """Why an answer with the status 200 is none: a gateway tells the error of the server behind it, whose status is the error's code."""
    told = _error_in(answer)
    if told is None:
        return None
    reason, status = told
    if not status:
        return Refusal(f"the answer is an error: {reason}", advice="Try again later or use another model.", perhaps_charged=True)
    again = status in _PASSING or status >= 500
    return Refusal(f"HTTP {status}, told within an answer: {reason}", status, again, perhaps_charged=status in _GATEWAY_TIMEOUTS)


def _error_in(answer: Json) -> tuple[str, int] | None:
    """The message and the status of an error that an answer holds, 0 where its code is no status; None where it holds none."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    if not error:
        return None
    told, code = (error.get("message"), error.get("code")) if isinstance(error, Mapping) else (error, None)
    status = int(str(code)) if re.fullmatch("[0-9]{3}", str(code)) else 0
    return str(told or error), status if 400 <= status < 600 else 0


def _arrived(error: Exception) -> bool:
    """Whether a request may have reached the server that did not answer it; the client's classes come from httpx or httpx2."""
    return type(error.__cause__).__name__ in {"ReadTimeout", "ReadError", "RemoteProtocolError"}


def _no_connection(error: Exception, address: str) -> Refusal:
    """Why there is no connection, and whether there may be one soon: what fails in agreeing on TLS fails every time."""
    cause = str(error.__cause__ or error) or "the connection broke"
    told, seen = f"no connection to {address}{through_proxy(address)}: {cause}", error.__cause__
    if (variable := proxy_variable(address)) and re.match(r"4\d\d\b", cause):  # what the proxy itself said, which waiting does not mend
        return Refusal(told, advice=f"It is the proxy that refused: look at {variable}, or name the server in NO_PROXY.")
    while seen is not None and not isinstance(seen, ssl.SSLError):
        seen = seen.__cause__ or seen.__context__
    if seen is None or isinstance(seen, ssl.SSLEOFError) or type(error.__cause__).__name__ != "ConnectError":
        return Refusal(told, again=True, perhaps_charged=_arrived(error))
    if isinstance(seen, ssl.SSLCertVerificationError):
        return Refusal(told, advice="If the server is yours, name its certificate, or that of its authority, in SSL_CERT_FILE.")
    return Refusal(told, advice="Such a server may speak no TLS: try the address with http:// in place of https://.")


def _status_refusal(error: Any, longest_asked: float) -> Refusal:
    spent = getattr(error, "code", None) == "insufficient_quota"  # a 429 that no waiting mends
    reason = f"HTTP {error.status_code}: {_message(error)}"
    wait = asked_wait(error.response.headers)
    if wait is not None and wait > longest_asked:
        return Refusal(f"{reason} (it asks to wait {wait:.0f} s)", error.status_code)
    again = not spent and (error.status_code in _PASSING or error.status_code >= 500)
    return Refusal(reason, error.status_code, again, wait, perhaps_charged=error.status_code in _GATEWAY_TIMEOUTS)


def _message(error: Any) -> str:
    """The server's own words."""
    body: Json = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        told = inner.get("message") if isinstance(inner, dict) else inner
        return str(told or body.get("detail") or body)
    return str(body or error.message)
