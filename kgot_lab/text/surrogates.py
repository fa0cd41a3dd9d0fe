"""Halves of surrogate pairs, which a model's JSON may hold and no file, engine or socket takes."""

from __future__ import annotations

from collections.abc import Mapping

from kgot_lab.types import Json


def whole(value: Json) -> Json:
    """A text, or every text in a JSON value, with halves of surrogate pairs replaced: no file, model or engine takes them."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {whole(key): whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list | tuple) else value
