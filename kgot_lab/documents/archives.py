"""Safe unpacking of zip files: no path leaves the folder, and sizes are limited."""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from kgot_lab.arguments import CheckedRecord, bounded
from kgot_lab.errors import BadInput
from kgot_lab.text.cleaning import format_count

# Windows device names, reserved in any folder
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_LONGEST_NAME = 200
_CHUNK = 1 << 16
_END_RECORD_BYTES = 22  # bytes of the end record of a zip file, without its comment
_EXPLAINED_ERRORS = (zipfile.BadZipFile, RuntimeError, EOFError, OSError, ValueError, BadInput)
_LONGEST_DIRECTORY = 10_000_000  # bytes; each file takes 46 and its name


@dataclass(frozen=True)
class UnpackLimits(CheckedRecord):
    """Limits of the contents of a zip file."""

    files: int = bounded(1_000, 1)
    total_bytes: int = bounded(500_000_000, 1)
    ratio: int = bounded(200, 1)  # unpacked to packed size; a larger ratio is a zip bomb, beyond a megabyte
    depth: int = 12  # nested folders


@dataclass(frozen=True)
class ZipMember:
    """A file in a zip file: its name and declared size."""

    name: str
    size: int


def zip_members(path: Path) -> tuple[ZipMember, ...]:
    """List the files in a zip file as its directory declares them.

    Raises BadInput if it is not a zip file.
    """
    with _open_zip(path) as archive:
        files = (info for info in archive.infolist() if not info.is_dir())
        return tuple(ZipMember(info.filename, info.file_size) for info in files)


def unpacked(path: Path, into: Path, limits: UnpackLimits = UnpackLimits()) -> tuple[Path, ...]:
    """Unpack a zip file into a new folder `into`, all files or none, and return their paths.

    Raises BadInput with the reason for names that lead out of the folder or mean something else on other
    systems, for links, for passwords, and for what exceeds the limits. Sizes are counted while unpacking,
    whatever the zip file declares.
    """
    if into.exists():
        raise BadInput(f"{into.name} is there already")
    with _open_zip(path) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        _check_members(infos, limits)
        into.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=into.parent))
        try:
            left = limits.total_bytes
            for info in infos:
                left -= _unpack_member(archive, info, place / PurePosixPath(info.filename), left, limits)
            place.rename(into)
        finally:
            shutil.rmtree(place, ignore_errors=True)
    return tuple(sorted(file for file in into.rglob("*") if file.is_file()))


def find_unpacked(path: Path, into: Path, limits: UnpackLimits = UnpackLimits()) -> tuple[Path, ...]:
    """Return the files of a zip file in a folder that it was unpacked into earlier.

    Raises BadInput if the folder holds anything else.
    """
    with _open_zip(path) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        _check_members(infos, limits)
    found = sorted(into.rglob("*"))
    files = [file for file in found if not file.is_dir()]
    same = not any(place.is_symlink() for place in (into, *found)) and len(files) == len(infos)
    if not same or not all(_matches_member(into / PurePosixPath(info.filename), info) for info in infos):
        problem = f"the folder {into.name} is there already and holds something else than {path.name}"
        raise BadInput(f"{problem}; remove it, or unpack elsewhere")
    return tuple(files)


def _matches_member(file: Path, info: zipfile.ZipInfo) -> bool:
    """Return whether a file has the size and checksum of a zip member."""
    if not file.is_file() or file.stat().st_size != info.file_size:
        return False
    checksum = 0
    with file.open("rb") as source:
        while chunk := source.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    return checksum == info.CRC


def require_short_directory(file: BinaryIO) -> None:
    """Raise BadInput if the directory of a zip file is too long to read, according to its end record."""
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - _END_RECORD_BYTES - 65_535))
    end = file.read()
    at = end.rfind(b"PK\x05\x06")
    is_whole = at >= 0 and len(end) >= at + _END_RECORD_BYTES
    if is_whole and struct.unpack("<L", end[at + 12 : at + 16])[0] > _LONGEST_DIRECTORY:
        raise BadInput(f"the list of its files is longer than {_LONGEST_DIRECTORY / 1e6:.0f} MB")
    file.seek(0)


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        if not path.is_file():
            raise BadInput("not a regular file" if path.exists() else "it is not there")
        with path.open("rb") as file:
            require_short_directory(file)
        return zipfile.ZipFile(path)
    except Exception as error:  # a damaged directory raises various errors
        raise BadInput(f"{path.name} is not a zip file that can be read ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    """Return the message of an error that explains itself, or else its name."""
    return str(error) if isinstance(error, _EXPLAINED_ERRORS) else type(error).__name__


def _check_members(infos: Sequence[zipfile.ZipInfo], limits: UnpackLimits) -> None:
    """Raise BadInput unless every name is safe and the declared sizes are within the limits."""
    if not infos:
        raise BadInput("the zip file is empty")
    if len(infos) > limits.files:
        raise BadInput(f"the zip file holds {format_count(len(infos), 'file')}; the most is {limits.files:,}")
    if sum(info.file_size for info in infos) > limits.total_bytes:
        raise BadInput(f"the zip file unpacks to more than {limits.total_bytes / 1e6:,.0f} MB")
    for info in infos:
        if trouble := _refusal_reason(info, limits):
            raise BadInput(f"the zip file holds {info.filename[:100]!r}, {trouble}; nothing was unpacked")
    names = [info.filename.casefold() for info in infos]
    folders = {parent.as_posix() for name in names for parent in PurePosixPath(name).parents}
    if len(set(names)) < len(names) or folders & set(names):
        problem = "the zip file holds two files of one name, or a file called as a folder"
        raise BadInput(f"{problem}; nothing was unpacked")


def _refusal_reason(info: zipfile.ZipInfo, limits: UnpackLimits) -> str:
    """Return why a member must not be unpacked, or ""."""
    name, parts = info.filename, info.filename.split("/")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "which is a link" if kind == stat.S_IFLNK else "which is no regular file"
    is_ambiguous = any(mark in name for mark in ("\\", ":", "\ufffd")) or not name.isprintable()
    if is_ambiguous or name != info.orig_filename:
        return "a name that means different things on different computers"
    if name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return "a name that leads elsewhere"

    def is_portable(part: str) -> bool:
        plain = part == part.strip() and not part.endswith(".") and not _RESERVED.fullmatch(part)
        return plain and len(part) <= _LONGEST_NAME

    if not all(map(is_portable, parts)):
        return "a name that not every computer can have"
    if len(parts) > limits.depth:
        return f"which lies more than {limits.depth} folders deep"
    return "which is locked with a password" if info.flag_bits & 1 else ""


def _unpack_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, left: int, limits: UnpackLimits
) -> int:
    """Unpack one member and return its size.

    Raises BadInput if it exceeds the bytes left or the compression ratio.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    size, maximum = 0, max(1_000_000, info.compress_size * limits.ratio)
    try:
        with archive.open(info) as source, target.open("xb") as file:
            while chunk := source.read(_CHUNK):
                size += len(chunk)
                if size > left or size > maximum:
                    problem = f"{info.filename[:100]!r} unpacks to far more than it should"
                    raise BadInput(f"{problem}; nothing was unpacked")
                file.write(chunk)
    except BadInput:
        raise
    except Exception as error:  # decompressors have their own errors
        problem = f"{info.filename[:100]!r} cannot be unpacked ({_reason(error)})"
        raise BadInput(f"{problem}; nothing was unpacked") from None
    return size
