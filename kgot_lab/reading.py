"""Reading files that are files: a pipe, a device or a socket at a path would be read for ever, or waited for."""

import errno
import os
import stat
from pathlib import Path

_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_CHUNK = 1 << 20


def read_regular(path: Path | str, most: int | None = None) -> bytes:
    """The bytes of a regular file, of so many at most.

    Raises OSError, as reading does, also for what is no regular file, for a path that no file can have, and for more bytes than that.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0))
    except ValueError as error:  # a null character in the path
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, on Linux
            raise OSError(errno.EINVAL, f"not a regular file but {_KINDS[stat.S_IFSOCK]}", str(path)) from None
        raise
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)  # here, since fdopen refuses a folder and leaves it open
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, f"not a regular file but {_KINDS.get(kind, 'something else')}", str(path))
    with os.fdopen(descriptor, "rb") as file:
        if most is None:
            return file.read()
        data = bytearray()
        while chunk := file.read(min(_CHUNK, most + 1 - len(data))):  # it may say that it is empty, as those of /proc do
            data += chunk
        if len(data) > most:
            raise OSError(errno.EFBIG, f"larger than {most // 1_000_000} MB", str(path))
        return bytes(data)


def read_regular_text(path: Path | str, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text of a regular file, with line ends as `\\n`; raises OSError as `read_regular` does, and UnicodeDecodeError."""
    return read_regular(path).decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")
