"""One exchange with another server: no redirect is followed, and neither its time nor its size is the
server's to choose.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from kgot_lab.errors import BadInput, ToolFailed, require_amount
from kgot_lab.io.http_client import UnusableBody, bounded_client, client_library, way_to

_Made = TypeVar("_Made")
MOST_SECONDS = 3_600.0
NOT_IN_TIME = "it did not answer in time"


class Exchanged(NamedTuple):
    """What a server said: the status of HTTP, and its body."""

    status: int
    body: bytes


def is_plain_url(url: str) -> bool:
    """Whether a text is http(s)://HOST[:PORT][/PATH], without a password, a query or a fragment."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none
        return False
    more = "@" in parts.netloc or parts.query or parts.fragment
    return bool(whole) and not more and url.isprintable() and " " not in url


def exchanged(url: str, seconds: float, most: int, *, sent: bytes | None = None) -> Exchanged:
    """What a server says to a GET, or to a POST of JSON that is `sent`; raises ToolFailed with the reason,
    without the address.
    """
    library = client_library()
    headers = {"content-type": "application/json", "accept": "application/json"}
    try:
        with bounded_client(seconds, most, redirects=0, **way_to(url)) as client:
            answer = client.request(
                "GET" if sent is None else "POST", url, content=sent, headers=headers, timeout=seconds
            )
    except (library.TimeoutException, TimeoutError):
        raise ToolFailed(NOT_IN_TIME, again=True) from None
    except UnusableBody as error:
        raise ToolFailed(f"what it said cannot be used: {error}") from None
    except BadInput as error:  # a proxy that cannot be used
        raise ToolFailed(str(error)) from None
    except (library.HTTPError, library.InvalidURL, OSError, UnicodeError) as error:
        raise ToolFailed(f"it cannot be reached ({type(error).__name__})", again=True) from None
    if 300 <= answer.status_code < 400:
        raise ToolFailed(
            "it redirects to another address, which is not followed: name the address where it answers"
        )
    return Exchanged(answer.status_code, answer.content)


def all_in_time(jobs: Sequence[Callable[[], _Made]], seconds: float) -> list[_Made | Exception | None]:
    """What each of some jobs made or raised, done side by side; None for one that is not done after so many
    seconds.

    Such a one is left behind in a thread of its own, which the end of this program does not wait for: looking
    up a name cannot be stopped.
    """
    require_amount(seconds, "the seconds to wait", some=True)
    if seconds > MOST_SECONDS:
        raise BadInput(f"the seconds to wait are at most {MOST_SECONDS:g}")
    client_library()  # loading it is no part of the time that a server has
    found: list[_Made | Exception | None] = [None] * len(jobs)

    def do(number: int) -> None:
        try:
            found[number] = jobs[number]()
        except Exception as error:  # told to the one who waits
            found[number] = error

    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=do, args=(number,), daemon=True, name=f"delegation-{number}")
        for number in range(len(jobs))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    return list(found)
