"""Lines of JSON, each with a check of itself and of all lines before it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_SEAL = re.compile(r',"check":"([0-9a-f]{16})"\}$')


def append_seal(line: str, previous_seal: str) -> str:
    """Append a check of the line and of all lines before it to a JSON object.

    `previous_seal` is the seal of the previous line.
    """
    return f'{line[:-1]},"check":"{_compute_seal(line, previous_seal)}"}}'


def line_seal(line: str) -> str:
    """Return the value that the next line is checked against.

    It is the check in the line, or one computed from a line without a check.
    """
    match = _SEAL.search(line)
    return match[1] if match else _compute_seal(line, "")


def first_broken_seal(lines: Iterable[str]) -> int:
    """Return the number of the first line with a wrong or missing check, or 0.

    A check is missing only after lines that have one. Old files have none.
    """
    previous_seal, is_sealed = "", False
    for number, line in enumerate(lines, start=1):
        match = _SEAL.search(line)
        has_wrong_seal = match and match[1] != _compute_seal(line[: match.start()] + "}", previous_seal)
        if (is_sealed and not match) or has_wrong_seal:
            return number
        previous_seal, is_sealed = line_seal(line), is_sealed or bool(match)
    return 0


def _compute_seal(line: str, previous_seal: str) -> str:
    return hashlib.sha256(f"{previous_seal} {line}".encode()).hexdigest()[:16]
