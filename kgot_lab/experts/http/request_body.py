"""The body of a request, read whole before any door sees it: bounded in bytes and in time, whether it says
how long it is or not.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Message, Receive


class RequestRefused(Exception):
    """A request that no door sees: its status, a word for programs, and a sentence that says what to do."""

    def __init__(self, status: int, code: str, why: str):
        super().__init__(why)
        self.status, self.code, self.why = status, code, why


async def whole_body(receive: Receive, most: int, seconds: float) -> bytes | None:
    """The body, `most` bytes at most; None where the client left before its end. Raises RequestRefused: 413,
    or 408 after so many seconds.
    """
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise RequestRefused(413, "too_large", f"a body has {most:,} bytes at most")
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise RequestRefused(
            408, "too_slow", f"the body was not here within {seconds:g} seconds: send it again"
        ) from None


def replayed(body: bytes, receive: Receive) -> Receive:
    """What an application receives in the place of a body that was read: all of it at once, and then what
    comes after.
    """
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_body
