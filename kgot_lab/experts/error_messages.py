"""Error messages for callers and for the log of a server.

Neither contains a path, a key, or what somebody asked.
"""

from __future__ import annotations

import logging
import re
import traceback
from pathlib import Path

from kgot_lab.errors import (
    BadInput,
    LabError,
    LLMError,
    ModelMissing,
    NotInstalled,
    OutOfMemory,
    StoreUnavailable,
)

MODEL_ERRORS = (LLMError, ModelMissing, NotInstalled, OutOfMemory)
log = logging.getLogger("kgot_lab.experts")
STORE_UNREACHABLE = "the store of experts cannot be reached: try again later"
MODEL_FAILED = "the model of this expert gave no answer, or no whole one: the owner of this server finds the reason in its log"
SERVER_FAILED = "a part of this server failed: its owner finds the reason in its log"
_PATH = re.compile(r"(?<![\w:/.])(?:/|[A-Za-z]:\\)[^\s'\"\\/:;,)]+(?:[\\/][^\s'\"\\/:;,)]+)+")
_MAX_REASON_LENGTH = 500  # characters of a reason


def failure_message(error: Exception, *redacted: str) -> str:
    """Return the message for the caller, and log errors that the caller cannot fix.

    The words in `redacted` are removed from the log.
    """
    if isinstance(error, BadInput):
        return str(error)
    away = MODEL_FAILED if isinstance(error, MODEL_ERRORS) else SERVER_FAILED
    message = STORE_UNREACHABLE if isinstance(error, StoreUnavailable) else away
    log.warning("%s: %s", type(error).__name__, format_for_log(error, *redacted))
    return message


def format_for_log(error: Exception, *redacted: str) -> str:
    """Format an error for the log.

    For a LabError this is its message, without paths and the words in `redacted`. For any other error it is
    where it was raised, because its message may hold anything.
    """
    if not isinstance(error, LabError):
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        steps = (f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
        return " < ".join(steps) or "nowhere"
    text = str(error)
    for phrase in filter(None, redacted):
        text = text.replace(phrase, "…")
    return " ".join(_PATH.sub("…", text).split())[:_MAX_REASON_LENGTH]
