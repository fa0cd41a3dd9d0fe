"""Reading files that are files, and texts that are UTF-8: a pipe at a path would be waited for, UTF-16 be
taken for other letters.
"""

import codecs
import errno
import os
import stat
from pathlib import Path

from kgot_lab.errors import BadInput

NO_FILES = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}  # by the kind in a mode
_CHUNK = 1 << 20
_MARKS = {  # of the byte order; that of UTF-32 begins with that of UTF-16
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
_UNUSED = (
    "\U00040000"  # from here on Unicode has no letters: a tab in UTF-16 would be in such a one of UTF-32
)
_TOLD = 4096  # bytes of a text that tell what it is in


def read_regular(path: Path | str, most: int | None = None) -> bytes:
    """The bytes of a regular file, of so many at most.

    Raises OSError, as reading does, also for what is no regular file, for a path that no file can have, and
    for more bytes than that.
    """
    try:
        descriptor = os.open(
            path,
            os.O_RDONLY
            | getattr(os, "O_NONBLOCK", 0)
            | getattr(os, "O_BINARY", 0)
            | getattr(os, "O_NOCTTY", 0),
        )
    except ValueError as error:  # a null character in the path
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, on Linux
            raise OSError(
                errno.EINVAL, f"not a regular file but {NO_FILES[stat.S_IFSOCK]}", str(path)
            ) from None
        raise
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)  # here, since fdopen refuses a folder and leaves it open
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(
            errno.EINVAL, f"not a regular file but {NO_FILES.get(kind, 'something else')}", str(path)
        )
    with os.fdopen(descriptor, "rb") as file:
        if most is None:
            return file.read()
        data = bytearray()
        # it may say that it is empty, as those of /proc do
        while chunk := file.read(min(_CHUNK, most + 1 - len(data))):
            data += chunk
        if len(data) > most:
            raise OSError(errno.EFBIG, f"larger than {most // 1_000_000} MB", str(path))
        return bytes(data)


def read_regular_text(path: Path | str, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text of a regular file, with line ends as `\\n`; raises OSError as `read_regular` does, UnicodeDecodeError, and BadInput."""
    data = read_regular(path)
    require_narrow(data, path)
    return data.decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")


def utf8_text(data: bytes, path: Path | str) -> str:
    """The text of a file in UTF-8, with its mark or without; raises BadInput for another, which says what it
    is in.
    """
    require_narrow(data, path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path} is not UTF-8 ({error.reason} at byte {error.start + 1:,}): save it as UTF-8"
        ) from None


def require_narrow(data: bytes, path: Path | str) -> None:
    """Raise BadInput for the beginning of a file that is in UTF-16 or UTF-32, which would be read as other
    letters.
    """
    if encoding := wide_encoding(data):
        raise BadInput(
            f"{path} is a text in {encoding[:6].upper()}, and only UTF-8 is read: save it as UTF-8"
        )


def wide_encoding(data: bytes) -> str:
    """The UTF-16 or UTF-32 that a text is in, by its mark or, without one, by where its zeros are; "" for
    what is surely neither.
    """
    for encoding, marks in _MARKS.items():
        if data.startswith(marks):
            return encoding
    told = data[:_TOLD]
    if b"\0" not in told:
        return ""
    for encoding in ("utf-32-le", "utf-32-be"):
        if _is_text(told[: len(told) // 4 * 4], encoding):
            return encoding
    first, second, half = told[::2].count(0), told[1::2].count(0), len(told) // 2
    for encoding, other, own in (("utf-16-le", first, second), ("utf-16-be", second, first)):
        # of Asian letters few have zeros, so those are told by a mark only
        if not other and 2 * own >= half and _is_text(told, encoding):
            return encoding
    return ""


def _is_text(data: bytes, encoding: str) -> bool:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return False
    return bool(text) and "\0" not in text and max(text) < _UNUSED
