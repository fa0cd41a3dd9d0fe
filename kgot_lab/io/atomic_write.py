"""Files that are written whole or not at all."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from kgot_lab.errors import BadInput


def write_whole(path: Path | str, content: str | bytes, what: str) -> Path:
    """Write bytes, or a text as UTF-8, and return the path; `what` names it in the BadInput that is raised
    when it cannot be written.

    The folder is made if it is not there, a lone surrogate becomes its escape, and a file that was there
    stays until the new one is whole.
    """
    path = Path(path)
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()  # a link goes on leading to its file
        if os.access(target.parent, os.W_OK) and (target.is_file() or not target.exists()):
            _replace(target, data)
        else:  # a device or a pipe has to stay what it is, and a locked folder takes no second file
            target.write_bytes(data)
    except OSError as error:
        raise BadInput(f"cannot write {what} {path}: {error.strerror or error}") from error
    return path


def _replace(path: Path, data: bytes) -> None:
    """Write beside the path, with the rights of a file that is there, and then take its place."""
    beside = path.with_name(f".{uuid4().hex}.new")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a power failure could leave the new name with nothing behind it
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
