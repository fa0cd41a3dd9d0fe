"""Reading a folder of files, or one file, into passages for search."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kgot_lab.arguments import check_arguments
from kgot_lab.documents.conversion import CONVERTERS
from kgot_lab.documents.files import LARGEST_FILE, MAIL_EXTENSIONS, SAVE_AS, ExtractedText, read_document_text
from kgot_lab.documents.structure import Section, read_sections
from kgot_lab.errors import BadInput
from kgot_lab.io.files import SPECIAL_FILES, detect_wide_encoding
from kgot_lab.text.cleaning import format_count, plain_text, printable_line
from kgot_lab.types import Document

# folders of installed packages and of generated files
_INSTALLED_FOLDERS = ("node_modules", "__pycache__", "site-packages")
_HEAD_BYTES = 4096
_TRACE_HEAD = re.compile(rb'\s*\{\s*"trace"\s*:')
_NAMED_FILES = 3  # of many with the same remark
READ_AS_TEXT = f".txt, .md, .csv, .json, {', '.join((*CONVERTERS, *MAIL_EXTENSIONS))} files"


class ListedFile(NamedTuple):
    """A file: its path, its name relative to the folder, and why it must not be opened, or ''."""

    path: Path
    name: str
    refusal: str


@dataclass(frozen=True)
class Remark:
    """A note on one file: its relative path, and why it was skipped or how it was read."""

    path: str
    reason: str

    def __str__(self) -> str:
        return printable_line(f"{self.path}: {self.reason}")


def group_remarks(remarks: Iterable[Remark]) -> list[Remark]:
    """Join the remarks with the same reason, where they are many, into one that names the first files."""
    by_reason: dict[str, list[str]] = {}
    for remark in remarks:
        by_reason.setdefault(remark.reason, []).append(remark.path)
    found: list[Remark] = []
    for reason, paths in by_reason.items():
        if more := len(paths[_NAMED_FILES:]) if len(paths) > _NAMED_FILES + 1 else 0:
            paths = [f"{', '.join(paths[:_NAMED_FILES])} and {more} more"]
        found += (Remark(path, reason) for path in paths)
    return found


@dataclass(frozen=True, repr=False)
class Library:
    """The passages of a folder, the unreadable files with reasons, and those with guessed text."""

    documents: tuple[Document, ...]
    skipped: tuple[Remark, ...] = ()
    doubtful: tuple[Remark, ...] = ()

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        files = len({document.id.rpartition("#")[0] for document in self.documents})
        lines = [
            f"<Library: {format_count(len(self.documents), 'passage')} from {format_count(files, 'file')}, {len(self.skipped)} skipped>"
        ]
        skipped, doubtful = group_remarks(self.skipped), group_remarks(self.doubtful)
        lines += [f"  skipped {remark}" for remark in skipped[:10]]
        lines += [f"  note {remark}" for remark in doubtful[:10]]
        hidden = len(skipped[10:]) + len(doubtful[10:])
        return "\n".join(lines + ([f"  and {hidden} more"] if hidden else []))


@check_arguments
def read_documents(folder: str | Path) -> Library:
    """Read a file, or all files of a folder, as passages of at most about 150 words.

    A passage has the title of its file and the headings above it. A row of a table is one line that names its
    columns. Ids are `path#number`, ordered by path. Any text is read; what is not is named with the reason:
    hidden, binary, empty, too large, a link, an installed package. A single file has the ids that it has in its
    folder. Raises BadInput with the reasons if nothing could be read, and NotInstalled if a file needs the
    converter and it is missing.
    """
    folder = Path(folder)
    with suppress(RuntimeError):  # unknown user: it may be a folder of that name
        folder = folder.expanduser()
    if not folder.is_dir() and not folder.is_file():
        raise BadInput(f"{folder} is not a folder, nor a file; give one with texts, such as {READ_AS_TEXT}")
    documents: list[Document] = []
    skipped, doubtful = [], []
    for path, name, refusal in list_files(folder):
        try:
            if refusal:
                raise BadInput(refusal)
            found = read_document_text(path, cached=True)
            sections, remark = read_file_sections(found, name)
        except BadInput as error:
            skipped.append(Remark(name, str(error)))
            continue
        if remark:
            doubtful.append(Remark(name, remark))
        texts = [(text, section.title) for section in sections for text in section.passages()]
        documents += [
            Document(f"{name}#{number}", *map(plain_text, text)) for number, text in enumerate(texts, start=1)
        ]
    if not documents:
        reasons = "; ".join(map(str, group_remarks(skipped)[:5])) or "it is empty"
        problem = f"nothing in {folder} could be read ({reasons})"
        raise BadInput(f"{problem}; texts are read, such as {READ_AS_TEXT}")
    return Library(tuple(documents), tuple(skipped), tuple(doubtful))


def read_file_sections(found: ExtractedText, name: str) -> tuple[list[Section], str]:
    """Split the text of a file into sections, and return them with what was guessed or did not parse."""
    path = PurePosixPath(name)
    extension = found.extension or path.suffix.lower()
    try:
        return read_sections(found.text, extension, path.stem, found.title), found.remark
    except BadInput as error:
        remarks = filter(None, (found.remark, f"{error}; read as plain text"))
        return read_sections(found.text, ".txt", path.stem), "; ".join(remarks)


def list_files(folder: Path) -> list[ListedFile]:
    """List the files of a folder and the folders that are left out, in the order of their names.

    A file may be given in place of a folder. It may be hidden or a link.
    """
    if not folder.is_dir():
        return [ListedFile(folder, _relative_name(folder, folder.parent), _unreadable_reason(folder))]
    return sorted(_walk(folder), key=lambda file: file.name)


def _walk(folder: Path) -> Iterator[ListedFile]:
    refused: list[OSError] = []
    root = folder.resolve()
    for parent, folders, files in os.walk(folder, onerror=refused.append):
        linked = [name for name in folders if os.path.islink(os.path.join(parent, name))]  # noqa: PTH114, PTH118  (no OSError)
        left_out = {name: why for name in folders if (why := _folder_refusal(parent, name))}
        left_out |= {name: "a hidden file" for name in files if _is_hidden(name)}
        folders[:] = [name for name in folders if name not in left_out]
        for name in {**left_out, **dict.fromkeys((*linked, *files))}:
            path = Path(parent) / name
            yield ListedFile(path, _relative_name(path, folder), left_out.get(name) or _refusal(path, root))
    for error in refused:
        path = Path(error.filename)
        why = f"the folder cannot be opened ({error.strerror})"
        yield ListedFile(path, _relative_name(path, folder), why)


def _folder_refusal(parent: str, name: str) -> str:
    if _is_hidden(name):
        return "a hidden folder"
    path = os.path.join(parent, name, "pyvenv.cfg")  # noqa: PTH118  (no OSError)
    is_installed = name in _INSTALLED_FOLDERS or name.endswith(".egg-info") or os.path.exists(path)  # noqa: PTH110
    return "a folder of installed packages or generated files" if is_installed else ""


def _refusal(path: Path, root: Path) -> str:
    try:
        return _link_refusal(path, root)
    except OSError as error:  # path too long, or folder not accessible
        return f"cannot be opened ({error.strerror})"
    except RuntimeError:  # raised by some versions of Python
        return "a link that leads back to itself"


def _link_refusal(path: Path, root: Path) -> str:
    if path.is_symlink():
        try:
            inside = path.resolve(strict=True).is_relative_to(root)
        except (FileNotFoundError, NotADirectoryError):
            return "a link to what is not there"
        return "a link to something else in the folder" if inside else "a link that leaves the folder"
    return _unreadable_reason(path)


def _unreadable_reason(path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = SPECIAL_FILES.get(stat.S_IFMT(status.st_mode), "something else")
            return f"not a regular file but {kind}"
        if status.st_size > LARGEST_FILE:
            return f"larger than {LARGEST_FILE // 1_000_000} MB"
        if path.suffix.lower() in {*CONVERTERS, *MAIL_EXTENSIONS, *SAVE_AS}:
            return ""
        return _head_refusal(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        return f"cannot be opened ({error.strerror})"


@lru_cache(100_000)
def _head_refusal(path: Path, modified: int, size: int) -> str:
    """Return why a file is not read, by its first bytes. The key of the cache changes when the file does."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if _TRACE_HEAD.match(head):  # its questions and guesses would answer the next question
        return "a recorded run of this program"
    return "" if b"\0" not in head or detect_wide_encoding(head) else "binary, not text"


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "~$"))  # ~$ is Word's lock file next to an open document


def _relative_name(path: Path, folder: Path) -> str:
    """Return the relative name as text. Names that differ only in bytes that are not UTF-8 stay distinct."""
    return os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "backslashreplace")
