"""Keys from a file .env, so that they stand neither in a shell's history nor in a file that is shared."""

from __future__ import annotations

import os
import re
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.reading import read_regular_text

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
# What changes how programs run, or where they connect, is not for a file that may have come with a folder from elsewhere.
_STEERS = re.compile(
    r"PATH|HOME|SHELL|IFS|ENV|TMPDIR|(PYTHON|LD_|DYLD_|BASH_|GIT_|NODE_|_?JAVA|SSL_|CURL_).*"
    r"|.*(_PROXY|_CA_BUNDLE|_BASE_URL|_HOST|_ENDPOINT|_HEADERS)",  # the last four: where a key is sent, and what goes with it
    re.IGNORECASE,
)


def load_env(path: str | Path = ".env") -> tuple[str, ...]:
    """Set the environment variables that a file names and that are not set; their names, in order, none where there is no file.

    A line is NAME=VALUE, also after `export`; the value may be in quotes, and # begins a comment. Nothing is expanded. Names that steer
    programs, such as PATH, HTTPS_PROXY or OPENAI_BASE_URL, are passed over. Raises BadInput with the number of a line that is neither;
    no value is told.
    """
    try:
        text = read_regular_text(path, "utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {type(error).__name__}") from None
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        told = _LINE.fullmatch(line.strip())
        value = None if told is None else _value(told[2])
        if told is None or value is None:
            raise BadInput(f"line {number} of {path}, which is not shown, is not NAME=VALUE with whole quotes, such as OPENAI_API_KEY=…")
        found[told[1]] = value
    new = [name for name in found if name not in os.environ and not _STEERS.fullmatch(name)]
    os.environ.update({name: found[name] for name in new})
    return tuple(new)


def _value(told: str) -> str | None:
    """A value without its quotes or the comment after it; None where a quote has no end."""
    if told[:1] in {"'", '"'}:
        value, end, rest = told[1:].partition(told[0])
        return value if end and (not rest.strip() or rest.lstrip().startswith("#")) else None
    return re.sub(r"(^|\s)#.*", "", told).strip()
