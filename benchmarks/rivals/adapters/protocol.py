"""Serve one system to the benchmark: commands as JSON lines on standard input, replies on standard output.

It runs with the Python of the system, so it imports nothing but the standard library.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, TextIO

Settings = dict[str, Any]


def serve(system: Callable[[Settings], Any]) -> None:
    """Make the system from the settings on the first line, then answer "index" and "ask" until the input ends.

    A system has `index(paths)`, which returns counts of what was made, and `ask(question)`, which returns the
    answer as text, or a dictionary with the key "answer". Both may be coroutines.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints goes to the log
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    settings = json.loads(sys.stdin.readline())
    made: Any = system(settings) if settings["indexed"] else None  # else its making is part of the index
    _send(replies, {"result": "ready"})  # its libraries are loaded
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if made is None:
                made = system(settings)
            result = getattr(made, command["do"])(command["with"])
            if inspect.isawaitable(result):
                result = loop.run_until_complete(result)
            reply = {"result": result}
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}"[:2000]}
        _send(replies, reply)


def _send(replies: TextIO, reply: object) -> None:
    replies.write(json.dumps(reply, ensure_ascii=False, default=str) + "\n")
    replies.flush()
