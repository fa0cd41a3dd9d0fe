"""Halves of surrogate pairs, which a model's JSON may hold and no file, engine or socket takes."""

from __future__ import annotations

import os
from collections.abc import Mapping

from kgot_lab.errors import BadInput
from kgot_lab.types import Json


def whole(value: Json) -> Json:
    """A text, or every text in a JSON value, with halves of surrogate pairs replaced: no file, model or
    engine takes them.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {whole(key): whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list | tuple) else value


def as_typed(text: str, what: str) -> str:
    """A text of the command line, also where the locale could not read its letters; raises BadInput where
    they are no UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return os.fsencode(text).decode()
        except UnicodeError:
            raise BadInput(
                f"{what} holds characters that are not UTF-8, as this locale reads them: set LC_ALL=C.UTF-8, or PYTHONUTF8=1"
            ) from None
    return text
