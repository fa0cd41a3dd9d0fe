"""How a briefing leaves the outbox: as a file, or by HTTP POST.

A briefing may be delivered again where the process was killed between the delivery and the note of it. It has
the same key then: a file of that name is written over with the same words, and a receiver of posts is told
the key in the header Idempotency-Key, so that it can pass over what it has.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from kgot_lab.domains.investment.accounts import OutboxEntry
from kgot_lab.errors import BadInput, ToolFailed, require, shortly, without_secrets
from kgot_lab.io.files import write_whole
from kgot_lab.io.http_client import is_loopback, through_proxy, way_to

Deliver = Callable[[OutboxEntry], None]  # raises ToolFailed, and what else is an error of ours
_SECONDS = 20.0  # for a receiver to answer in


def to_folder(folder: Path | str) -> Deliver:
    """Delivers a briefing as a file of JSON in a folder, named by its key; raises BadInput where it cannot be
    written.
    """
    place = Path(folder)

    def deliver(entry: OutboxEntry) -> None:
        write_whole(place / f"{entry.key}.json", _told(entry), "the briefing")

    return deliver


def to_address(url: str) -> Deliver:
    """Delivers a briefing by HTTP POST of JSON, with its key as Idempotency-Key; raises ToolFailed unless the
    answer is of 200 to 299.

    It says whose it is, so an address that is not of this computer begins with https; raises BadInput for
    another.
    """
    require(url, str, "briefings are delivered to an address, a text")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(
            f"briefings are delivered to an address such as https://HOST/PATH, not {shortly(without_secrets(url))}"
        )
    if parts.scheme == "http" and not is_loopback(url):
        raise BadInput(
            "a briefing says whose it is: an address that is not of this computer begins with https"
        )
    way = way_to(url)

    def deliver(entry: OutboxEntry) -> None:
        import httpx  # brought by openai

        where = without_secrets(f"{parts.scheme}://{parts.netloc}")
        headers = {"Content-Type": "application/json", "Idempotency-Key": entry.key}
        try:
            with (
                httpx.Client(timeout=_SECONDS, **way) as client,
                client.stream("POST", url, content=_told(entry), headers=headers) as answer,
            ):
                status = answer.status_code
        except httpx.HTTPError as error:
            told = f"{where} did not take a briefing{through_proxy(url)} ({type(error).__name__})"
            raise ToolFailed(f"{told}: see that it is there", again=True) from None
        if not 200 <= status < 300:
            busy = status >= 500 or status in (408, 429)
            raise ToolFailed(
                f"{where} answers a briefing with {status}" + (": it may take it later" if busy else ""),
                again=busy,
            )

    return deliver


def _told(entry: OutboxEntry) -> str:
    return json.dumps({**entry.body, "user": entry.user}, sort_keys=True)
