"""Extract the facts of one file from its bytes alone, in this process or in a worker with the same code."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tokenize
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from kgot_lab.documents.files import extract_text
from kgot_lab.embedding.vectors import CacheFile, CacheTable
from kgot_lab.errors import BadInput, LabError, NotInstalled
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.extraction.facts import (
    PROSE_ENDINGS,
    PYTHON_ENDINGS,
    SETTINGS_ENDINGS,
    Definition,
    FileFacts,
)
from kgot_lab.kgos.extraction.linking import Joined
from kgot_lab.kgos.extraction.python.statements import python_facts
from kgot_lab.kgos.extraction.texts import prose_facts, settings_facts
from kgot_lab.types import Edge, Json, Node

# The cache of this computer: facts of files by their bytes, and graphs of folders by their files.

_FACTS = CacheTable("extracted_files.sqlite", "facts", "json", "BLOB", "json")
_GRAPHS = CacheTable("extracted_graphs.sqlite", "graphs", "json", "BLOB", "json")


class CachedExtraction:
    """A cache of facts and graphs under digests of their input and of the version of the code."""

    def __init__(self, folder: Path | None):
        self._facts = CacheFile(folder, _FACTS, label="extraction", fallback="files are read again")
        self._graphs = CacheFile(folder, _GRAPHS, label="graph", fallback="the files are joined again")

    def facts(self, keys: Iterable[bytes]) -> Mapping[bytes, FileFacts]:
        """Return the cached facts for some keys.

        Missing and damaged entries are left out.
        """
        rows = (row for rows in self._facts.read(list(keys)) for row in rows)
        return {key: facts for key, value in rows if (facts := _facts_from(_unpacked(value))) is not None}

    def keep_facts(self, facts: Mapping[bytes, FileFacts]) -> None:
        """Store the facts of some files."""
        if facts:
            self._facts.write((key, _packed(each.to_json())) for key, each in facts.items())

    def graph(self, key: bytes) -> Joined | None:
        """Return the graph cached under a key, or None."""
        for rows in self._graphs.read([key]):
            for _, value in rows:
                return _graph_from(_unpacked(value))
        return None

    def keep_graph(self, key: bytes, found: Joined) -> None:
        """Store a graph."""
        nodes = [[each.id, list(each.labels), each.properties] for each in found.graph.nodes]
        edges = [[each.source, each.type, each.target, each.properties] for each in found.graph.edges]
        kept = {"nodes": nodes, "edges": edges, "sites": found.sites, "resolved": found.resolved}
        self._graphs.write([(key, _packed(kept))])


def key_of_parts(*parts: str | bytes) -> bytes:
    """Return a digest of some parts and of the version of the extraction code."""
    digest = hashlib.sha256(reading_version())
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


def _packed(value: Json | dict[str, Any]) -> bytes:
    return zlib.compress(json.dumps(value).encode(), 1)


def _unpacked(value: object) -> Any:
    if not isinstance(value, bytes):
        return None
    try:
        return json.loads(zlib.decompress(value))
    except (zlib.error, ValueError):
        return None


def _facts_from(kept: Any) -> FileFacts | None:
    try:
        return FileFacts.from_json(kept)
    except (TypeError, KeyError):
        return None


def _graph_from(kept: Any) -> Joined | None:
    try:
        nodes = (Node(id, tuple(labels), properties) for id, labels, properties in kept["nodes"])
        edges = (Edge(source, type, target, properties) for source, type, target, properties in kept["edges"])
        return Joined(PropertyGraph.of(nodes, edges), kept["sites"], kept["resolved"])
    except (TypeError, KeyError, ValueError):
        return None


@cache
def reading_version() -> bytes:
    """Return a digest of the code that reads and links files.

    Entries cached by another version are not used.
    """
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


MOST_TOGETHER, MOST_BYTES_TOGETHER = 16, 2_000_000  # files, and bytes of them, that a worker is sent at once


@dataclass(frozen=True)
class FileToRead:
    """The path of a file in its folder and its bytes; for Python also its module name, and whether it is a
    package.
    """

    path: str
    data: bytes
    module: str = ""
    is_package: bool = False


class ExtractedFile(NamedTuple):
    """The output of a worker: the version of its code, and for each file its facts, an error, or None if the
    caller has to read it.
    """

    version: bytes
    files: tuple[FileFacts | str | None, ...]


def facts_of_file(file: FileToRead) -> FileFacts:
    """Extract the facts of a file.

    Raises BadInput if the file cannot be read and NotInstalled if its parser is missing.
    """
    path, data, ending = file.path, file.data, PurePosixPath(file.path).suffix.lower()
    if ending in PYTHON_ENDINGS:
        return python_facts(_python_text(data), path, file.module, is_package=file.is_package)
    if not data.strip():
        kind = "config" if ending in SETTINGS_ENDINGS else "document"
        return FileFacts(path, ending[1:], (Definition(path, kind, path, 1, 1),), remark="empty")
    found = extract_text(data, ".txt")
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
    return replace(facts, remark=found.remark)


def read_file_facts(files: Sequence[FileToRead]) -> ExtractedFile:
    """Extract the facts of some files, as the task of a worker."""
    return ExtractedFile(reading_version(), tuple(map(_said, files)))


def files_together(files: Mapping[str, FileToRead]) -> list[list[FileToRead]]:
    """Split files into the batches that are sent to workers."""
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
    """Return what a worker read, after checking that it runs the same code.

    Raises LabError if the versions differ, since another version would produce another graph.
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
        return None  # the parser may be installed where the request comes from
    except BadInput as error:
        return str(error)


def _python_text(data: bytes) -> str:
    """Decode a Python file by the encoding that it declares, or as UTF-8.

    Raises BadInput if it cannot be decoded.
    """
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
