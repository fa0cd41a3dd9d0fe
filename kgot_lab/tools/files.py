"""The files that tools may read: attachments, a folder, and the contents of their zip files."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kgot_lab.arguments import check_arguments
from kgot_lab.documents.archives import UnpackLimits, find_unpacked, unpacked
from kgot_lab.documents.files import read_document_text
from kgot_lab.errors import BadInput, NotInstalled, ToolFailed, short_repr
from kgot_lab.text.cleaning import format_count, printable_line
from kgot_lab.tools.tool import Result, TextTool, digest_of
from kgot_lab.types import Document

_MAX_LISTED = 50  # files listed in a message
_MAX_NESTING = 3  # zip files inside one another


class FileCollection:
    """Files by name. Names are not paths, so no other file can be read.

    `paths` are files, known by their bare names. `unpack_into` is the folder to unpack zip files into, which a
    later shelf reuses. By default it is a temporary folder, removed with the shelf. `limits` are those of zip
    files, whose bytes are counted over all of them. Raises BadInput if a file is missing or two have the same
    name.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        unpack_into: Path | None = None,
        limits: UnpackLimits | None = None,
    ):
        self._files = _attached_files(paths)
        self._unpack_into = unpack_into
        self._limits = limits or UnpackLimits()

    @property
    def digest(self) -> str:
        """A digest of the files, or "" if one cannot be read."""
        try:
            return digest_of(
                name.encode(errors="surrogatepass") + path.read_bytes() for name, path in self._files.items()
            )
        except OSError:  # a tool says so when it is called
            return ""

    @property
    def names(self) -> list[str]:
        """The sorted names of the files."""
        return sorted(self._files)

    def path(self, name: str) -> Path:
        """Return the path of a file by its name.

        Raises ToolFailed, which lists the names, for an unknown name.
        """
        if name not in self._files:
            raise ToolFailed(f"there is no file {short_repr(name)}; there are: {self.format_names()}")
        return self._files[name]

    def format_names(self) -> str:
        """Format the names on one line, as many as fit."""
        shown = [printable_line(name) for name in self.names[:_MAX_LISTED]]
        hidden = len(self._files) - len(shown)
        return ", ".join(shown) + (f" and {hidden} more" if hidden else "")

    def unpack(self, name: str) -> list[str]:
        """Unpack a zip file on first use and return the names of its files on this shelf.

        Raises ToolFailed if it cannot be unpacked.
        """
        path = self.path(name)
        inside = f"{name}/"
        if not any(known.startswith(inside) for known in self._files):
            if sum(part.lower().endswith(".zip") for part in name.split("/")) > _MAX_NESTING:
                problem = f"{printable_line(name)} is a zip file more than {_MAX_NESTING} deep in others"
                raise ToolFailed(f"{problem}; it is not unpacked")
            target = self._folder() / name
            target = target.with_name(f"{target.name}.unpacked")
            try:
                unpack = find_unpacked if target.exists() else unpacked
                files = unpack(path, target, self._limits)
            except BadInput as error:
                raise ToolFailed(f"{printable_line(name)}: {error}") from None
            size = sum(file.stat().st_size for file in files)
            self._limits = replace(self._limits, total_bytes=self._limits.total_bytes - size)
            self._files |= {inside + file.relative_to(target).as_posix(): file for file in files}
        return [known for known in self.names if known.startswith(inside)]

    def _folder(self) -> Path:
        """Return the folder to unpack into.

        A temporary one is removed with the shelf or at exit.
        """
        if self._unpack_into is None:
            made = tempfile.TemporaryDirectory(prefix="kgot-lab-unpacked-", ignore_cleanup_errors=True)
            weakref.finalize(self, made.cleanup)
            self._unpack_into = Path(made.name)
        return self._unpack_into

    def __repr__(self) -> str:
        return f"<FileCollection: {len(self._files)} files>"


@check_arguments
def _attached_files(paths: Sequence[str | Path]) -> dict[str, Path]:
    files = {Path(path).name: Path(path).resolve() for path in paths}
    if missing := [str(path) for path in paths if not Path(path).is_file()]:
        raise BadInput(f"attachments are files; not there: {', '.join(missing)}")
    if len(files) < len(paths):
        raise BadInput(
            f"attachments have different names, as in a folder; given: {', '.join(map(str, paths))}"
        )
    if not files:
        raise BadInput("there is no attachment to read: give at least one file")
    return files


# The tool that reads attachments.


def read_attachment(paths: Sequence[str | Path], *, name: str = "read_attachment") -> TextTool:
    """Create a tool that reads one of the given files by its bare name. No other file can be read.

    Raises BadInput if a file is missing or two have the same name.
    """
    files = FileCollection(paths)

    def run(file: str) -> Result:
        if file not in files.names:
            raise ToolFailed(f"{name}: there is no attachment {file!r}; there are: {', '.join(files.names)}")
        try:
            found = read_document_text(files.path(file))
        except (BadInput, NotInstalled) as error:
            raise ToolFailed(f"{name}: {file}: {error}") from error
        return Result(found.text, (Document(file, found.text, found.title or file),))

    description = (
        f"Returns the text of an attached file. Attached: {' '.join(', '.join(files.names).split())}."
    )
    takes = {"file": "the name of the file, without a folder"}
    return TextTool(name, description, takes, run, digest=files.digest)


# The tool that unpacks zip files.


@check_arguments
def extract_zip(files: FileCollection, *, name: str = "extract_zip") -> TextTool:
    """Create a tool that unpacks a zip file of the shelf, so that other tools can read its files.

    The shelf decides where to unpack.
    """

    def run(file: str) -> Result:
        try:
            names = files.unpack(file)
        except ToolFailed as error:
            raise ToolFailed(f"{name}: {error}") from None
        head = f"{printable_line(file)} holds {format_count(len(names), 'file')}:"
        return Result("\n".join([head, *map(printable_line, names)]))

    description = "Unpacks a zip file and returns the names of the files in it, by which they can be read."
    return TextTool(name, description, {"file": "the name of the zip file"}, run, digest=files.digest)
