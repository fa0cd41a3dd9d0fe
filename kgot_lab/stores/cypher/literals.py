"""Values and names as Cypher spells them."""

from __future__ import annotations

import math
import re

from kgot_lab.sandbox.cypher.mapping import backticked
from kgot_lab.types import Json

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
)
_LEAST = -(2**63)


def cypher_literal(value: Json) -> str:
    """A value that a Cypher database can store, as Cypher spells it."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(cypher_literal, value))}]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if value == _LEAST and isinstance(value, int):
        return f"({_LEAST + 1} - 1)"  # its digits alone are too large a number
    if isinstance(value, float) and not math.isfinite(value):
        return f"({'-' if value < 0 else ''}{0 if math.isnan(value) else 1}.0 / 0.0)"
    return repr(value)


def _text(text: str) -> str:
    escaped = text.translate(_ESCAPES)
    # some servers resolve \uXXXX wherever they see it
    return '"' + escaped.replace("\\\\u", '\\\\" + "u') + '"'


def name(text: str) -> str:
    """A label, type or property name, in backticks where it needs them."""
    return text if _PLAIN.fullmatch(text) else backticked(text)
