"""API keys of servers, and their removal from texts."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import string
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from dotenv.parser import parse_stream

from kgot_lab.errors import LLMError, error_message, keys_in, mask_secrets
from kgot_lab.io.files import read_regular_text
from kgot_lab.llm.presets import Endpoint

# Keys from a .env file, so that they are neither in a shell's history nor in shared files.

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# A .env file may come with a downloaded folder. So it must not change how programs run or where they connect.
_CONTROL_VARIABLE = re.compile(
    r"PATH|HOME|SHELL|IFS|ENV|TMPDIR|(PYTHON|LD_|DYLD_|BASH_|GIT_|NODE_|_?JAVA|SSL_|CURL_).*"
    r"|.*(_PROXY|_CA_BUNDLE|_BASE_URL|_HOST|_ENDPOINT|_HEADERS)",  # the last four decide where a key is sent, and with what
    re.IGNORECASE,
)


def load_env(path: str | Path = ".env") -> tuple[str, ...]:
    """Set the environment variables in a .env file that are not yet set, and return their names in order.

    A line is NAME=VALUE, optionally after `export`. A quoted value may span several lines, and # starts a
    comment. Nothing is expanded but escapes such as \\n in double quotes. Names that control programs, such
    as PATH, HTTPS_PROXY or OPENAI_BASE_URL, are ignored. A line or file that cannot be read is ignored with
    a warning that gives line numbers and no value. Without a file the result is empty.
    """
    try:
        found, _ = _read(Path(path))
    except (OSError, UnicodeDecodeError) as error:
        problem = f"{path} cannot be read ({type(error).__name__})"
        warnings.warn(f"{problem}, so no key is taken from it", stacklevel=2)
        return ()
    if note := unparsed_lines_note(path):
        warnings.warn(note, stacklevel=2)
    new = [name for name in found if name not in os.environ and not _CONTROL_VARIABLE.fullmatch(name)]
    os.environ.update({name: found[name] for name in new})
    return tuple(new)


def unparsed_lines_note(path: str | Path = ".env") -> str:
    """Return a sentence with the numbers of the lines in a .env file that cannot be parsed.

    It is "" if all can, or if there is no readable file.
    """
    try:
        _, lines = _read(Path(path))
    except (OSError, UnicodeDecodeError):
        return ""
    if not lines:
        return ""
    numbers = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines))}"
    verb = "was" if len(lines) == 1 else "were"
    return f"{numbers} of {path} {verb} not read: a line is NAME=VALUE with whole quotes, such as OPENAI_API_KEY=…"


def _read(path: Path) -> tuple[dict[str, str], list[int]]:
    """Read the values in a .env file, and the numbers of the lines that cannot be parsed.

    Raises OSError or UnicodeDecodeError if the file cannot be read.
    """
    try:
        text = read_regular_text(path, "utf-8-sig").replace("\r\n", "\n")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return {}, []
    found: dict[str, str] = {}
    unread: list[int] = []
    for name, value, (source, line), is_bad in parse_stream(StringIO(text)):
        # \0: no variable may hold it
        if name and value is not None and "\0" not in value and _NAME.fullmatch(name):
            found[name] = value
        elif name or is_bad:
            first = line + source[: len(source) - len(source.lstrip())].count("\n")
            unread += range(first, line + source.rstrip().count("\n") + 1)
    return found, unread


NO_KEY = "none"  # sent to a server that needs no key
_MAX_SHOWN = 8  # maximum consecutive characters of a key to show: servers repeat the start of a wrong key
_SHORT_KEY = 4  # a key this short occurs inside ordinary words
_MAX_SEARCHED = 6_000  # characters of a message that are searched
# unlike lower(), it keeps the index of every character
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def key_for(preset: Endpoint) -> str:
    """Return the API key for a server.

    Raises LLMError, without showing the key, if it is missing or cannot be sent in a header.
    """
    key = os.environ.get(preset.key_variable, "").strip()
    if not key and preset.key_needed:
        unread = unparsed_lines_note()
        reason = unread and f" ({unread})"
        raise LLMError(
            f"{preset.name} needs a key: set the environment variable {preset.key_variable}{reason}. Nothing was sent."
        )
    # RFC 9110, 5.5; other characters are allowed, but clients and servers disagree on them
    if not re.fullmatch("[ -~]*", key):
        problem = f"the key in the environment variable {preset.key_variable} holds a line break or another letter that no request can carry"
        raise LLMError(f"{problem}: copy it again, on one line and in plain letters. Nothing was sent.")
    return key or NO_KEY


def remove_key(text: str, key: str) -> str:
    """Truncate a text to 6,000 characters and remove a key from it.

    Pieces of the key, its encodings and anything that looks like a key are removed too.
    """
    text = re.sub(r"\b(sk-|AIza)[-\w*.]{8,}", "…", text[:_MAX_SEARCHED])
    if key == NO_KEY:
        return text
    pieces = {
        form[start : start + _MAX_SHOWN]
        for form in map(_squeezed, _spellings(key))
        for start in range(max(1, len(form) - _MAX_SHOWN + 1))
    }
    lowered, characters = text.translate(_LOWER), list(text)
    places = [place for place, letter in enumerate(lowered) if not letter.isspace()]
    squeezed = "".join(lowered[place] for place in places)
    for size in {len(piece) for piece in pieces} - {0}:
        for start in range(len(squeezed) - size + 1):
            if squeezed[start : start + size] not in pieces:
                continue
            first, end = places[start], places[start + size - 1] + 1
            around = lowered[max(0, first - 1) : first] + lowered[end : end + 1]
            if size > _SHORT_KEY or not re.search(r"\w", around):
                characters[first:end] = "\0" * (end - first)
    return re.sub("\0+", "…", "".join(characters))


def _squeezed(text: str) -> str:
    return "".join(text.split())


def mask_key(text: str, key: str) -> str:
    """Replace a key that a server repeats in a reply, also with a space between its letters, by ….

    A key of fewer than eight characters is left, since it may be a word.
    """
    return _forms_pattern(_forms_to_mask(key)).sub("…", text)


class StreamMasker:
    """Masks a key like `mask_key` in a streamed reply, holding back what may be its beginning."""

    def __init__(self, key: str):
        self._forms, self._held = _forms_to_mask(key), ""
        self._spelt = _forms_pattern(self._forms)
        self._beginnings = {form[:end] for form in self._forms for end in range(1, len(form))}

    def after(self, piece: str) -> str:
        """Return the text that can be passed on after this piece."""
        self._held = self._spelt.sub("…", self._held + piece)
        end = self._open()
        told, self._held = self._held[:end], self._held[end:]
        return told

    def rest(self) -> str:
        """Return the text that was held back, at the end of the reply."""
        held, self._held = self._held, ""
        return self._spelt.sub("…", held)

    def _open(self) -> int:
        """Return the index in the held text where the key, or a longer form of it, may begin.

        It may continue in the next piece.
        """
        # no form has two spaces in a row, or is more than half spaces
        longest = 2 * max(map(len, self._forms), default=0)
        tail = re.split(r"\s\s", self._held[max(0, len(self._held) - longest) :])[-1].translate(_LOWER)
        starts = (
            at
            for at in range(len(tail))
            if not tail[at].isspace() and _squeezed(tail[at:]) in self._beginnings
        )
        return len(self._held) - len(tail) + next(starts, len(tail))


def _forms_to_mask(key: str) -> list[str]:
    """Return the encodings of a key to mask in a reply, longest first.

    There are none for a key that is not masked.
    """
    if key == NO_KEY or len(key) < _MAX_SHOWN:
        return []
    return sorted(set(map(_squeezed, _spellings(key))), key=len, reverse=True)


def _forms_pattern(forms: list[str]) -> re.Pattern[str]:
    spaced = (r"\s?".join(map(re.escape, form)) for form in forms)
    return re.compile("|".join(spaced) if forms else r"(?!)", re.IGNORECASE | re.ASCII)


def mask_known_keys(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Mask the keys in environment variables that `keys_in` finds."""
    lowered = _squeezed(text).translate(_LOWER)
    for key in keys_in(os.environ if environment is None else environment):
        if any(_squeezed(form) in lowered for form in _spellings(key)):
            text = mask_key(text, key)
    return text


@contextmanager
def errors_without_keys(problem: str = "") -> Iterator[None]:
    """Mask the keys in an error of another's code, and in those that it came from.

    Raises LLMError in place of an error that cannot be changed.
    """
    try:
        yield
    except Exception as error:
        is_clean, chain = True, [error]
        for each in chain:
            each.args = tuple(_keyless(arg) if isinstance(arg, str) else arg for arg in each.args)
            is_clean = is_clean and _keyless(error_message(each)) == error_message(each)
            chain += [
                more
                for more in (each.__cause__, each.__context__)
                if isinstance(more, Exception) and more not in chain
            ]
        if is_clean:
            raise
        raise LLMError(f"{problem}{type(error).__name__}: {_keyless(error_message(error))}") from None


def _keyless(text: str) -> str:
    return mask_known_keys(mask_secrets(text))


def authorization_headers(preset: Endpoint, key: str) -> dict[str, Any]:
    """Return the authorization header for a server.

    For addresses other than OpenAI's, headers that the client adds from the environment for OpenAI are
    removed.
    """
    import openai

    headers = {"Authorization": f"Bearer {key}"}  # explicit, since OPENAI_CUSTOM_HEADERS may set another
    host = (urlsplit(preset.base_url).hostname or "").rstrip(".")
    if host == "openai.com" or host.endswith(".openai.com"):
        return headers
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    added = {line.partition(":")[0].strip() for line in lines if ":" in line}
    others = [name for name in added if name.lower() != "authorization"]
    return dict.fromkeys(("OpenAI-Organization", "OpenAI-Project", *others), openai.Omit()) | headers


def _spellings(key: str) -> Iterator[str]:
    """Yield a key in lower case, plain, reversed and encoded.

    The encodings are escapes, percent-encoding, hexadecimal, base64 and base32.
    """
    yield key.translate(_LOWER)
    raw = key.encode()
    forms = [key[::-1], repr(key)[1:-1], json.dumps(key)[1:-1], html.escape(key), quote(key)]
    forms += [quote(key, safe=""), raw.hex(), "".join(f"%{byte:02x}" for byte in raw)]
    for encode, bits, group in ((base64.b64encode, 6, 3), (base64.b32encode, 5, 5)):
        # a prefix such as "Bearer " shifts the key within the groups of bytes
        for shift in range(group):
            coded = encode(b"\0" * shift + raw).decode()
            whole = coded[-(-8 * shift // bits) : 8 * (shift + len(raw)) // bits]
            forms += [whole, whole.replace("+", "-").replace("/", "_")]
    yield from (form.translate(_LOWER) for form in forms if len(form) > _SHORT_KEY)
