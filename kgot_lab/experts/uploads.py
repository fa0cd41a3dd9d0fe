"""Graphs that people bring: files are uploaded one by one, and are a graph once the upload is finished."""

from __future__ import annotations

import re
import shutil
import time
from contextlib import suppress
from pathlib import Path, PurePosixPath

from kgot_lab.errors import BadInput
from kgot_lab.experts.expert import slugify
from kgot_lab.io.files import os_errors_as, write_atomically
from kgot_lab.kgos.query.graph_loading import is_graph_file

MAX_FILE_BYTES = 50_000_000
_MAX_FILES, _MAX_BYTES = 20_000, 1_000_000_000  # of one upload
_MAX_DEPTH, _MAX_NAME_BYTES = 30, 200  # folders in one another, and bytes of a name in a path
_UPLOAD_ID = re.compile(r"[a-z0-9]{8,40}")
_STAGING, _STALE_SECONDS = ".unfinished", 86_400


class UploadFolder:
    """A folder of uploaded graphs: a file or a folder each.

    Unfinished uploads are in a hidden folder of it, and those of a day ago are deleted at the start.
    """

    def __init__(self, folder: Path):
        self.folder = folder.resolve()
        self.is_open = True  # whether the page offers to upload more
        self._staging = self.folder / _STAGING
        self._sizes: dict[str, tuple[int, int]] = {}  # files and bytes of unfinished uploads
        for path in self._staging.glob("*"):
            if path.stat().st_mtime < time.time() - _STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)

    def put_file(self, upload: str, name: str, data: bytes) -> None:
        """Store one file of an upload under its relative path.

        Raises BadInput for a path that leaves the upload or cannot be stored, and for an upload that is too large.
        """
        path = self._upload(upload) / _checked_path(name)
        files, size = self._sizes.get(upload, (0, 0))
        if files >= _MAX_FILES or size + len(data) > _MAX_BYTES or len(data) > MAX_FILE_BYTES:
            limits = f"{_MAX_FILES:,} files of {MAX_FILE_BYTES:,} bytes, {_MAX_BYTES:,} bytes in all"
            raise BadInput(f"this is too much for one graph: {limits}; bring a part of it")
        if path.exists():
            raise BadInput(f"{name[:200]!r} was sent already: each file is sent once")
        try:
            write_atomically(path, data, "a file")
        except BadInput:  # whose message has the path on this computer
            raise BadInput(f"{name[:200]!r} cannot be stored beside the other files") from None
        self._sizes[upload] = files + 1, size + len(data)

    def finish(self, upload: str, name: str, used: tuple[str, ...]) -> str:
        """Make a graph of the files of an upload, and return its id: the name, with a number if it is in `used`.

        A graph file that was uploaded alone is stored as it is. Raises BadInput if nothing was uploaded.
        """
        source, base = self._upload(upload), slugify(name)
        if not source.is_dir():
            raise BadInput("nothing was uploaded: send the files first")
        id = next(
            each for each in (base, *(f"{base}_{n}" for n in range(2, len(used) + 3))) if each not in used
        )
        top = source
        while len(inside := list(top.iterdir())) == 1:  # a folder in it, or one file
            top = inside[0]
            if top.is_file():
                break
        is_graph = top.is_file() and is_graph_file(top)
        top = top.parent if top.is_file() and not is_graph else top
        with os_errors_as(f"the graph {id} cannot be stored"):
            top.rename(self.folder / (id + top.suffix if is_graph else id))
            shutil.rmtree(source, ignore_errors=True)
        self._sizes.pop(upload, None)
        return id

    def discard(self, upload: str) -> None:
        """Delete the files of an unfinished upload."""
        shutil.rmtree(self._upload(upload), ignore_errors=True)
        self._sizes.pop(upload, None)

    def remove(self, path: Path) -> bool:
        """Delete an uploaded graph, and return whether it was one."""
        if path.parent != self.folder:
            return False
        with suppress(NotADirectoryError):
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        return True

    def _upload(self, upload: str) -> Path:
        if not _UPLOAD_ID.fullmatch(upload):
            raise BadInput("the id of an upload is 8 to 40 lower-case letters and digits")
        return self._staging / upload


def _checked_path(name: str) -> PurePosixPath:
    """Return a relative path that stays in its folder. Raises BadInput for any other."""
    parts = name.split("/")
    is_safe = all(
        part.strip(" .") and "\\" not in part and part.isprintable() and len(part.encode("utf-8", "replace")) <= _MAX_NAME_BYTES
        for part in parts
    )  # fmt: skip
    if not is_safe or len(parts) > _MAX_DEPTH or ":" in parts[0]:
        raise BadInput(
            f"{name[:200]!r} is no path of a file in a folder: names joined by /, without .. and \\"
        )
    return PurePosixPath(*parts)
