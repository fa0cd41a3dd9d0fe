"""Read regular files as UTF-8, write files atomically, and locate bundled data."""

from __future__ import annotations

import codecs
import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from unicodedata import category
from uuid import uuid4

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, LabError, StoreUnavailable, UnknownName, short_repr

# by the kind in a mode
SPECIAL_FILES = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
SPECIAL_FILES |= dict.fromkeys((stat.S_IFCHR, stat.S_IFBLK), "a device")
# a pipe does not block, and a terminal does not become that of the program; Windows has other flags
_READ_FLAGS = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NONBLOCK", "O_BINARY", "O_NOCTTY"))
_CHUNK = 1 << 20
_BYTE_ORDER_MARKS = {  # of the byte order; that of UTF-32 begins with that of UTF-16
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
# from here on Unicode has no letters: a tab in UTF-16 would be in such a one of UTF-32
_FIRST_UNASSIGNED = "\U00040000"
_SAMPLE_BYTES = 4096  # bytes of a text from which its encoding is detected


def read_regular_file(path: Path | str, max_bytes: int | None = None) -> bytes:
    """Read the bytes of a regular file, at most `max_bytes` if given.

    Raises OSError, as reading does, also if the path is no regular file or cannot name one, and if the file
    is larger than that.
    """
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except ValueError as error:  # a null character in the path
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, on Linux
            problem = f"not a regular file but {SPECIAL_FILES[stat.S_IFSOCK]}"
            raise OSError(errno.EINVAL, problem, str(path)) from None
        raise
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)  # here, since fdopen refuses a folder and leaves it open
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        found = SPECIAL_FILES.get(kind, "something else")
        raise OSError(errno.EINVAL, f"not a regular file but {found}", str(path))
    with os.fdopen(descriptor, "rb") as file:
        if max_bytes is None:
            return file.read()
        data = bytearray()
        # it may say that it is empty, as those of /proc do
        while chunk := file.read(min(_CHUNK, max_bytes + 1 - len(data))):
            data += chunk
        if len(data) > max_bytes:
            raise OSError(errno.EFBIG, f"larger than {max_bytes // 1_000_000} MB", str(path))
        return bytes(data)


def read_regular_text(path: Path | str, encoding: str = "utf-8", errors: str = "strict") -> str:
    r"""Read the text of a regular file, with line ends as `\n`.

    Raises OSError as `read_regular_file` does, UnicodeDecodeError if the text is not in `encoding`, and BadInput
    if it is in UTF-16 or UTF-32.
    """
    data = read_regular_file(path)
    refuse_wide_encoding(data, path)
    return data.decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")


def read_file_as(kind: str, path: Path | str) -> bytes:
    """Read the bytes of a regular file that should be a "graph", say. Raises BadInput if it cannot be read."""
    with os_errors_as(f"{path}: cannot be read as {kind}"):
        return read_regular_file(path)


@contextmanager
def os_errors_as(problem: str, kind: type[LabError] = BadInput) -> Iterator[None]:
    """Raise an error that tells the problem and the reason in place of an OSError, or of text that is not UTF-8."""
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "") or getattr(error, "reason", error)
        raise kind(f"{problem}: {reason}") from error


def utf8_text(data: bytes, path: Path | str) -> str:
    """Decode the text of a file in UTF-8, with or without a byte order mark.

    Raises BadInput, naming the encoding if it is recognized, if it is in another.
    """
    refuse_wide_encoding(data, path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start + 1:,}"
        raise BadInput(f"{path} is not UTF-8 ({where}): save it as UTF-8") from None


def read_tables(path: Path) -> dict[str, list[list[str]]]:
    """Read the tables of a text file of this package, by the headings in brackets above them.

    A row is a line, its fields parted by |. Empty lines and those that begin with # are left out.
    """
    tables: dict[str, list[list[str]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]"):
            rows = tables.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            rows.append([field.strip() for field in line.split("|")])
    return tables


def refuse_wide_encoding(data: bytes, path: Path | str) -> None:
    """Raise BadInput for a file that begins like UTF-16 or UTF-32, which would be decoded to other
    characters.
    """
    if encoding := detect_wide_encoding(data):
        name = encoding[:6].upper()
        raise BadInput(f"{path} is a text in {name}, and only UTF-8 is read: save it as UTF-8")


def detect_wide_encoding(data: bytes) -> str:
    """Detect whether a text is in UTF-16 or UTF-32, and return the encoding or "".

    Uses the byte order mark or, without one, the positions of zero bytes.
    """
    for encoding, marks in _BYTE_ORDER_MARKS.items():
        if data.startswith(marks):
            return encoding
    sample = data[:_SAMPLE_BYTES]
    if b"\0" not in sample:
        return ""
    for encoding in ("utf-32-le", "utf-32-be"):
        if _is_text(sample[: len(sample) // 4 * 4], encoding):
            return encoding
    even_zeros, odd_zeros, half = sample[::2].count(0), sample[1::2].count(0), len(sample) // 2
    zeros = {"utf-16-le": (even_zeros, odd_zeros), "utf-16-be": (odd_zeros, even_zeros)}
    for encoding, (low_byte_zeros, high_byte_zeros) in zeros.items():
        # Asian text has few zeros, so it is recognized only by a mark
        # and a NUL in another text is no letter
        is_likely = len(sample) % 2 == 0 and 4 * high_byte_zeros >= 3 * half
        if not low_byte_zeros and is_likely and _is_text(sample, encoding):
            return encoding
    return ""


def _is_text(data: bytes, encoding: str) -> bool:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return False
    has_controls = any(category(char) == "Cc" and not char.isspace() for char in set(text))
    return bool(text) and not has_controls and max(text) < _FIRST_UNASSIGNED


# Files that are written completely or not at all.


@check_arguments
def write_atomically(path: Path | str, content: str | bytes, what: str) -> Path:
    """Write bytes, or a text as UTF-8, atomically and return the path.

    The folder is created if it is missing, and a lone surrogate becomes its escape. An existing file stays
    until the new one is complete. Raises BadInput, with `what` as the name of the content, if it cannot be
    written.
    """
    path = Path(path)
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    with os_errors_as(f"cannot write {what} {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()  # a symbolic link keeps pointing to its file
        if os.access(target.parent, os.W_OK) and (target.is_file() or not target.exists()):
            _replace_file(target, data)
        else:  # a device or a pipe has to stay what it is, and a locked folder takes no second file
            target.write_bytes(data)
    return path


def _replace_file(path: Path, data: bytes) -> None:
    """Write a temporary file beside the path, with the permissions of an existing file, and rename it."""
    temporary = path.with_name(f".{uuid4().hex}.new")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a power failure could leave the new name with nothing behind it
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


# The location of the bundled data and recorded runs, and of the results of a checkout.

_INSTALLED = Path(__file__).parents[1] / "data"
_CHECKOUT = Path(__file__).parents[2]
_RESULTS = "benchmarks"  # a folder of the checkout, which a wheel does not carry


@check_arguments
def bundled_path(name: str | Path) -> Path:
    """Return the path of a bundled data folder or file, in a wheel or in a checkout.

    Names that begin with benchmarks/ exist in a checkout only. Raises UnknownName if there is no such data,
    and BadInput for a path outside the data folder, or in a checkout that is not there.
    """
    if Path(name).parts[:1] == (_RESULTS,):
        return _results_path(str(name))
    root = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT / "data"
    path = root / name
    if ".." in path.parts or not path.is_relative_to(root):
        raise BadInput(f"bundled data lie inside the folder {root.name}, and {short_repr(name)} does not")
    if not path.exists():
        known = [item.name for item in root.iterdir()] if root.is_dir() else []
        raise UnknownName("bundled data", str(name), known)
    return path


def _results_path(name: str) -> Path:
    path = _CHECKOUT / name
    if ".." in path.parts:
        raise BadInput(f"results lie inside the folder {_RESULTS}, and {short_repr(name)} does not")
    if not (_CHECKOUT / _RESULTS).is_dir():
        problem = f"{name} comes with a checkout of the project and not with the installed package"
        raise BadInput(f"{problem}: clone it and pip install -e it")
    if not path.exists():
        raise BadInput(f"this checkout has no {short_repr(name)}; look into {_RESULTS}/results")
    return path


def require_valid_path(path: Path) -> None:
    """Raise BadInput for a path that no system accepts: one with a NUL or an invalid half of a surrogate
    pair.
    """
    try:
        is_valid = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_valid = False
    if not is_valid:
        raise BadInput(f"{str(path)!r} can be no path: give another")


def require_folder_of(path: Path) -> None:
    """Raise BadInput if the folder of a new file is missing, which may be a typing mistake."""
    if not path.parent.is_dir():
        raise BadInput(f"there is no folder {path.parent}: make it first, or name another file")


def make_folder(folder: Path) -> None:
    """Make a folder if it is missing. Raises BadInput if the one it would be in is missing too, or it is a file."""
    require_folder_of(folder)
    with os_errors_as(f"cannot make the folder {folder}"):
        folder.mkdir(exist_ok=True)


def is_nonempty_file(path: Path) -> bool:
    """Return whether a file exists and is not empty.

    Raises BadInput if there is no folder for it, and StoreUnavailable if it is not a file or cannot be opened.
    """
    try:
        require_folder_of(path)
        if not path.exists() or (path.is_file() and not path.stat().st_size):
            return False
    except OSError as error:
        raise StoreUnavailable(f"{path}: cannot be opened: {error.strerror}; give another path") from None
    if not path.is_file():
        raise StoreUnavailable(f"{path}: cannot be opened: it is no file; give another path")
    return True


def read_statements(module: str, name: str) -> dict[str, Any]:
    """Read the statements of an SQL file beside a module, by section.

    A section begins with a comment of its name, such as "-- indexes".
    """
    text = Path(module).with_name(name).read_text(encoding="utf-8")
    _, *parts = re.split(r"^-- (\w+).*\n", text, flags=re.MULTILINE)
    sections = zip(parts[::2], parts[1::2], strict=True)
    return {name: tuple(text.strip().removesuffix(";").split(";\n")) for name, text in sections}


def back_up_damaged_file(path: Path) -> Path:
    """Copy a file to an unused name beside it, unless it has a copy, and return the path of the copy.

    Raises OSError if that fails.
    """
    copies = (path.with_name(f"{path.name}.damaged-{number}") for number in count(1))
    data, part = path.read_bytes(), path.with_name(f"{path.name}.damaged.part")
    copy = next(copy for copy in copies if not copy.exists() or copy.read_bytes() == data)
    part.write_bytes(data)
    part.replace(copy)
    return copy
