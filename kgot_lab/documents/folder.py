"""Reading a folder of files, or one file, into passages for search."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kgot_lab.documents.conversion import CONVERTERS
from kgot_lab.documents.files import PLAIN_EXTENSIONS, read_document_text
from kgot_lab.errors import BadInput, require
from kgot_lab.text.cleaning import printable_line
from kgot_lab.types import Document

# Splitting of texts into passages at the ends of paragraphs, lines or sentences.

_PASSAGE_WORDS = 150

_BOUNDARIES = (
    re.compile(r"\n\s*\n"),  # paragraphs
    re.compile(r"\n"),  # lines
    re.compile(r"(?<=[.!?])\s+(?=[\"'“(\[]?[A-ZÀ-Þ0-9])|(?<=[。！？])"),  # sentences
    re.compile(r"\s+"),  # words
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")  # a line that starts or ends a code block
_HEADING = re.compile(r"#{1,6}[ \t]+(.+)")
_SEPARATORS = ("\n\n", "\n", " ", " ")


def split_passages(text: str, words: int = _PASSAGE_WORDS) -> list[str]:
    """Split a text into passages of at most `words` words, at the coarsest boundary that works.

    Only white space is lost.
    """
    packed: list[str] = []
    for glue, atom in _atoms(text.replace("\r\n", "\n").replace("\r", "\n").strip(), words, 0, ""):
        if packed and _fits(packed[-1] + glue + atom, words):
            packed[-1] += glue + atom
        elif atom:
            packed.append(atom)
    return packed


def first_heading(text: str) -> str:
    """Return the first Markdown heading outside fenced code, at most 200 characters, or ''."""
    match = next(filter(None, map(_HEADING.match, _lines_outside_code(text))), None)
    heading = match[1].strip() if match else ""
    without_closing = heading.rstrip("#")  # "## Title ##" has a closing sequence, "C#" does not
    return (without_closing.rstrip() if without_closing.endswith((" ", "\t")) else heading)[:200]


def remove_heading(text: str) -> str:
    """Remove a Markdown heading on the first line, which is already the title.

    A text that is only a heading is unchanged.
    """
    rest = re.sub(r"\A\s*#{1,6}[ \t]+.+$\s*", "", text, count=1, flags=re.MULTILINE)
    return rest or text


def _lines_outside_code(text: str) -> Iterator[str]:
    """Yield the lines of a Markdown text outside fenced code."""
    fence = ""  # the opening fence of the current code block
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1].startswith("`") and "`" in mark[2]):  # otherwise inline code
            fence = mark[1]
        else:
            yield line


def _fits(text: str, words: int) -> bool:
    # ten characters count as a word in scripts without spaces and in very long words
    return len(text) <= 10 * words and len(text.split()) <= words


def _atoms(text: str, words: int, level: int, glue: str) -> Iterator[tuple[str, str]]:
    """Yield parts that fit, each with its separator from the previous part.

    Parts are whole paragraphs, else lines, else sentences, else words.
    """
    if _fits(text, words):
        yield glue, text.strip()
    elif level == len(_BOUNDARIES):  # one very long word
        starts = range(0, len(text), 10 * words)
        yield from ((glue if start == 0 else "", text[start : start + 10 * words]) for start in starts)
    else:
        for number, part in enumerate(filter(None, _BOUNDARIES[level].split(text))):
            yield from _atoms(part, words, level + 1, _SEPARATORS[level] if number else glue)


_READABLE = (*PLAIN_EXTENSIONS, *CONVERTERS)


@dataclass(frozen=True)
class Remark:
    """A note on one file: its relative path, and why it was skipped or how it was read."""

    path: str
    reason: str

    def __str__(self) -> str:
        return printable_line(f"{self.path}: {self.reason}")


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
        lines = [f"<Library: {len(self.documents)} passages from {files} files, {len(self.skipped)} skipped>"]
        lines += [f"  skipped {remark}" for remark in self.skipped[:10]]
        lines += [f"  note {remark}" for remark in self.doubtful[:10]]
        hidden = len(self.skipped[10:]) + len(self.doubtful[10:])
        return "\n".join(lines + ([f"  and {hidden} more"] if hidden else []))


def read_documents(folder: str | Path) -> Library:
    """Read a file, or all files of a folder, as passages of at most about 150 words.

    Ids are `path#number`, ordered by path. In a folder, hidden files are skipped and links are not followed.
    A single file has the ids that it has in its folder. Raises BadInput with the reasons if nothing could be
    read, and NotInstalled if a file needs the converter and it is missing.
    """
    require(folder, (str, Path), "documents are read from a folder or a file, named by its path")
    folder = Path(folder)
    with suppress(RuntimeError):  # unknown user: it may be a folder of that name
        folder = folder.expanduser()
    if not folder.is_dir() and not folder.is_file():
        raise BadInput(f"{folder} is not a folder, nor a file; give one with {', '.join(_READABLE)} files")
    documents: list[Document] = []
    skipped, doubtful = [], []
    files = _files(folder) if folder.is_dir() else [_single_file(folder)]
    for path, name, refusal in sorted(files, key=lambda item: item[1]):
        try:
            if refusal:
                raise BadInput(refusal)
            found = read_document_text(path)
        except BadInput as error:
            skipped.append(Remark(name, str(error)))
            continue
        if found.remark:
            doubtful.append(Remark(name, found.remark))
        title = first_heading(found.text) or found.title[:200] or PurePosixPath(name).stem
        passages = enumerate(split_passages(remove_heading(found.text)), start=1)
        documents += [Document(f"{name}#{number}", text, title) for number, text in passages]
    if not documents:
        reasons = "; ".join(map(str, skipped[:5])) or "it is empty"
        problem = f"nothing in {folder} could be read ({reasons})"
        raise BadInput(f"{problem}; {', '.join(_READABLE)} files are read")
    return Library(tuple(documents), tuple(skipped), tuple(doubtful))


def _files(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield each file and each skipped folder: its path, its relative name, and why it must not be opened.

    The reason is '' for a file that may be opened.
    """
    refused: list[OSError] = []
    root = folder.resolve()
    for parent, folders, files in os.walk(folder, onerror=refused.append):
        linked = [name for name in folders if os.path.islink(os.path.join(parent, name))]  # noqa: PTH114, PTH118  (no OSError)
        hidden = {name: "a hidden folder" for name in folders if _is_hidden(name)}
        hidden |= {name: "a hidden file" for name in files if _is_hidden(name)}
        folders[:] = [name for name in folders if name not in hidden]
        for name in {**hidden, **dict.fromkeys((*linked, *files))}:
            path = Path(parent) / name
            yield path, _relative_name(path, folder), hidden.get(name) or _refusal(path, root)
    for error in refused:
        path = Path(error.filename)
        yield path, _relative_name(path, folder), f"the folder cannot be opened ({error.strerror})"


def _single_file(path: Path) -> tuple[Path, str, str]:
    """Return the entry of a file that was named explicitly, like those of `_files`.

    It may be hidden or a link.
    """
    return path, _relative_name(path, path.parent), _unreadable_reason(path)


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
    if path.suffix.lower() not in _READABLE:
        return f"{path.suffix or 'a file without extension'} is not read"
    return "" if path.is_file() else "not a regular file"


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "~$"))  # ~$ is Word's lock file next to an open document


def _relative_name(path: Path, folder: Path) -> str:
    """Return the relative name as text. Names that differ only in bytes that are not UTF-8 stay distinct."""
    return os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "backslashreplace")
