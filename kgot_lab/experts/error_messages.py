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
STORE_AWAY = "the store of experts cannot be reached: try again later"
MODEL_AWAY = "the model of this expert gave no answer, or no whole one: the owner of this server finds the reason in its log"
PART_AWAY = "a part of this server failed: its owner finds the reason in its log"
_PATH = re.compile(r"(?<![\w:/.])(?:/|[A-Za-z]:\\)[^\s'\"\\/:;,)]+(?:[\\/][^\s'\"\\/:;,)]+)+")
_MOST = 500  # characters of a reason


def failure_message(error: Exception, *unsaid: str) -> str:
    """Return the message for the caller, and log errors that the caller cannot fix.

    The words in `unsaid` are removed from the log.
    """
    if isinstance(error, BadInput):
        return str(error)
    away = MODEL_AWAY if isinstance(error, MODEL_ERRORS) else PART_AWAY
    told = STORE_AWAY if isinstance(error, StoreUnavailable) else away
    log.warning("%s: %s", type(error).__name__, reason_logged(error, *unsaid))
    return told


def reason_logged(error: Exception, *unsaid: str) -> str:
    """Format an error for the log.

    For a LabError this is its message, without paths and the words in `unsaid`. For any other error it is
    where it was raised, because its message may hold anything.
    """
    if not isinstance(error, LabError):
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        return (
            " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
            or "nowhere"
        )
    text = str(error)
    for words in filter(None, unsaid):
        text = text.replace(words, "…")
    return " ".join(_PATH.sub("…", text).split())[:_MOST]
