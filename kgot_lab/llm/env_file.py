"""Keys from a file .env, so that they stand neither in a shell's history nor in a file that is shared."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

from kgot_lab.io.files import read_regular_text

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
# What changes how programs run, or where they connect, is not for a file that may have come with a folder
# from elsewhere.
_STEERS = re.compile(
    r"PATH|HOME|SHELL|IFS|ENV|TMPDIR|(PYTHON|LD_|DYLD_|BASH_|GIT_|NODE_|_?JAVA|SSL_|CURL_).*"
    r"|.*(_PROXY|_CA_BUNDLE|_BASE_URL|_HOST|_ENDPOINT|_HEADERS)",  # the last four: where a key is sent, and what goes with it
    re.IGNORECASE,
)


def load_env(path: str | Path = ".env") -> tuple[str, ...]:
    """Set the environment variables that a file names and that are not set; their names, in order, none where
    there is no file.

    A line is NAME=VALUE, also after `export`; the value may be in quotes, then over several lines, and #
    begins a comment. Nothing is expanded. Names that steer programs, such as PATH, HTTPS_PROXY or
    OPENAI_BASE_URL, are passed over. What cannot be read, a line or the file, is passed over too, with a
    warning that tells the numbers of the lines and no value.
    """
    try:
        found, _ = _read(Path(path))
    except (OSError, UnicodeDecodeError) as error:
        warnings.warn(
            f"{path} cannot be read ({type(error).__name__}), so no key is taken from it", stacklevel=2
        )
        return ()
    if told := not_read(path):
        warnings.warn(told, stacklevel=2)
    new = [name for name in found if name not in os.environ and not _STEERS.fullmatch(name)]
    os.environ.update({name: found[name] for name in new})
    return tuple(new)


def not_read(path: str | Path = ".env") -> str:
    """Which lines of a file cannot be read, by their numbers, as a sentence; "" where all can, or there is no
    file that can.
    """
    try:
        _, lines = _read(Path(path))
    except (OSError, UnicodeDecodeError):
        return ""
    if not lines:
        return ""
    which = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines))}"
    were = "was" if len(lines) == 1 else "were"
    return (
        f"{which} of {path} {were} not read: a line is NAME=VALUE with whole quotes, such as OPENAI_API_KEY=…"
    )


def _read(path: Path) -> tuple[dict[str, str], list[int]]:
    """The values in a file by their names, and the numbers of the lines that are none; raises OSError,
    UnicodeDecodeError.
    """
    try:
        lines = read_regular_text(path, "utf-8-sig").replace("\r\n", "\n").split("\n")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return {}, []
    found: dict[str, str] = {}
    unread: list[int] = []
    place = 0
    while place < len(lines):
        line, number = lines[place].strip(), place + 1
        place += 1
        if not line or line.startswith("#"):
            continue
        told = _LINE.fullmatch(line)
        value, more = (None, 0) if told is None else _value(told[2], lines, place)
        if told is None or value is None or "\0" in value:  # which no environment takes
            unread.append(number)
        else:
            found[told[1]] = value
            place += more
    return found, unread


def _value(told: str, lines: list[str], place: int) -> tuple[str | None, int]:
    """A value without its quotes or the comment after it, and how many lines from `place` it takes; None
    where a quote has no end.
    """
    quote = told[:1]
    if quote not in {"'", '"'}:
        return re.sub(r"(^|\s)#.*", "", told).strip(), 0
    parts, line, more = list[str](), told[1:], 0
    while quote not in line:
        if place + more == len(lines):
            return None, 0
        parts.append(line)
        line, more = lines[place + more], more + 1
    last, _, rest = line.partition(quote)
    return ("\n".join([*parts, last]) if not rest.strip() or rest.lstrip().startswith("#") else None), more
