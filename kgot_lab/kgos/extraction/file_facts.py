"""The facts of one file, read from its bytes alone: by this process, or by another that has the same code."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from kgot_lab.documents.files import text_from
from kgot_lab.errors import BadInput, LabError, NotInstalled
from kgot_lab.kgos.extraction.facts import (
    PROSE_ENDINGS,
    PYTHON_ENDINGS,
    SETTINGS_ENDINGS,
    Definition,
    FileFacts,
)
from kgot_lab.kgos.extraction.file_facts import reading_version
from kgot_lab.kgos.extraction.python.statements import python_facts
from kgot_lab.kgos.extraction.texts import prose_facts, settings_facts

MOST_TOGETHER, MOST_BYTES_TOGETHER = 16, 2_000_000  # files, and bytes of them, that a worker is sent at once


@dataclass(frozen=True)
class FileToRead:
    """A file by its path in its folder, with its bytes; of Python the module that it is, and whether that is
    a package.
    """

    path: str
    data: bytes
    module: str = ""
    is_package: bool = False


class ExtractedFile(NamedTuple):
    """What another process read: the version of its code, and of each file the facts, why there are none, or
    None: read it yourself.
    """

    version: bytes
    files: tuple[FileFacts | str | None, ...]


def facts_of_file(file: FileToRead) -> FileFacts:
    """The facts of a file; raises BadInput for what cannot be read, NotInstalled where a parser is missing."""
    path, data, ending = file.path, file.data, PurePosixPath(file.path).suffix.lower()
    if ending in PYTHON_ENDINGS:
        return python_facts(_python_text(data), path, file.module, is_package=file.is_package)
    if not data.strip():
        kind = "config" if ending in SETTINGS_ENDINGS else "document"
        return FileFacts(path, ending[1:], (Definition(path, kind, path, 1, 1),), remark="empty")
    found = text_from(data, ".txt")
    text = re.sub(r"\r\n?", "\n", found.text)
    if ending in SETTINGS_ENDINGS:
        facts = settings_facts(text, path)
    elif ending in PROSE_ENDINGS:
        facts = prose_facts(text, path)
    else:
        from kgot_lab.kgos.extraction.scripts import script_facts

        facts = script_facts(text, path)
    if not found.remark:
        return facts
    return FileFacts(
        facts.path, facts.language, facts.definitions, facts.references, found.remark, facts.flow
    )


def read_file_facts(files: Sequence[FileToRead]) -> ExtractedFile:
    """The task of a worker: what each of some files says."""
    return ExtractedFile(reading_version(), tuple(map(_said, files)))


def files_together(files: Mapping[str, FileToRead]) -> list[list[FileToRead]]:
    """Some files in the lots that workers are sent."""
    lots: list[list[FileToRead]] = []
    size = 0
    for each in files.values():
        if not lots or len(lots[-1]) == MOST_TOGETHER or size + len(each.data) > MOST_BYTES_TOGETHER:
            lots.append([])
            size = 0
        lots[-1].append(each)
        size += len(each.data)
    return lots


def same_reading(read: ExtractedFile) -> ExtractedFile:
    """What a worker read, if its code is ours; raises LabError, since another version would make another
    graph.
    """
    if read.version != reading_version():
        raise LabError(
            "a worker reads files by another version of kgot_lab: install the same on each, then ask again"
        )
    return read


def _said(file: FileToRead) -> FileFacts | str | None:
    try:
        return facts_of_file(file)
    except NotInstalled:
        return None  # it may be installed where the question comes from
    except BadInput as error:
        return str(error)


def _python_text(data: bytes) -> str:
    """The text of a file of Python in the encoding that it declares, UTF-8 otherwise; raises BadInput."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return re.sub(r"\r\n?", "\n", data.decode(encoding))
    except SyntaxError as error:
        said = (
            "is not UTF-8, and declares no other encoding"
            if "invalid or missing" in str(error)
            else f"does not parse: {error}"
        )
        raise BadInput(said) from None
    except LookupError as error:
        raise BadInput(f"does not parse: {error}") from None
    except UnicodeDecodeError as error:
        raise BadInput(
            f"is not {encoding} ({error.reason} at byte {error.start + 1:,}), and declares no other encoding"
        ) from None
