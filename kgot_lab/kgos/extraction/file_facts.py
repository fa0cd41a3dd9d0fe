"""Extract the facts of one file from its bytes alone, in this process or in a worker with the same code."""

from __future__ import annotations

import hashlib
import io
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from kgot_lab import documents
from kgot_lab.documents.files import EXTRACTED_FILES, extract_text, pack_json, unpack_json
from kgot_lab.documents.folder import read_file_sections
from kgot_lab.embedding.vectors import CacheFile
from kgot_lab.errors import BadInput, LabError, NotInstalled
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.extraction.facts import (
    PROSE_ENDINGS,
    PYTHON_ENDINGS,
    SCRIPT_ENDINGS,
    SETTINGS_ENDINGS,
    FileFacts,
)
from kgot_lab.kgos.extraction.linking import LinkedGraph
from kgot_lab.kgos.extraction.python.points_to import CallGraph, solve_calls
from kgot_lab.kgos.extraction.python.program import Program
from kgot_lab.kgos.extraction.python.statements import python_facts
from kgot_lab.kgos.extraction.texts import prose_facts, section_facts, settings_facts
from kgot_lab.types import Edge, Node

# The cache of this computer: facts of files by their bytes, and graphs of folders by their files.

_GRAPHS = "extracted_graphs-2.sqlite"


class ExtractionCache:
    """A cache of facts and graphs under digests of their input and of the version of the code."""

    def __init__(self, folder: Path | None):
        self._facts = CacheFile(folder, EXTRACTED_FILES, label="extraction", fallback="files are read again")
        self._graphs = CacheFile(folder, _GRAPHS, label="graph", fallback="the files are joined again")

    def read_facts(self, keys: Iterable[bytes]) -> Mapping[bytes, FileFacts]:
        """Return the cached facts for some keys.

        Missing and damaged entries are left out.
        """
        values = self._facts.read(list(keys)).items()
        return {
            key: facts for key, value in values if (facts := _facts_from_json(unpack_json(value))) is not None
        }

    def store_facts(self, facts: Mapping[bytes, FileFacts]) -> None:
        """Store the facts of some files."""
        if facts:
            self._facts.write({key: pack_json(each.to_json()) for key, each in facts.items()})

    def solve_calls(self, program: Program) -> CallGraph:
        """Return the calls of a program: those that are cached if no flow of it has changed but its lines."""
        flows = (f"{module}\0{flow['digest']}" for module, flow in sorted(program.flows.items()))
        key = cache_key("calls", repr(sorted(program.names.package_of.items())), *flows)
        if (value := self._graphs.read([key]).get(key)) is not None:
            return CallGraph(*unpack_json(value))
        found = solve_calls(program)
        self._graphs.write({key: pack_json(list(found))})
        return found

    def read_graph(self, key: bytes) -> LinkedGraph | None:
        """Return the graph cached under a key, or None."""
        value = self._graphs.read([key]).get(key)
        return None if value is None else _graph_from_json(unpack_json(value))

    def store_graph(self, key: bytes, linked: LinkedGraph) -> None:
        """Store a graph."""
        nodes = [[node.id, list(node.labels), node.properties] for node in linked.graph.nodes]
        edges = [[edge.source, edge.type, edge.target, edge.properties] for edge in linked.graph.edges]
        values = {"nodes": nodes, "edges": edges, "calls": dict(linked.calls)}
        self._graphs.write({key: pack_json(values)})


def cache_key(*parts: str | bytes) -> bytes:
    """Return a digest of some parts and of the version of the extraction code."""
    digest = hashlib.sha256(extraction_version())
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


def _facts_from_json(values: Any) -> FileFacts | None:
    try:
        return FileFacts.from_json(values)
    except ValueError:
        return None


def _graph_from_json(values: Any) -> LinkedGraph | None:
    try:
        nodes = (Node(id, tuple(labels), properties) for id, labels, properties in values["nodes"])
        edges = (Edge(source, type, end, properties) for source, type, end, properties in values["edges"])
        calls = {language: (known, sites) for language, (known, sites) in values["calls"].items()}
        return LinkedGraph(PropertyGraph.of(nodes, edges), calls)
    except (TypeError, KeyError, ValueError):
        return None


@cache
def extraction_version() -> bytes:
    """Return a digest of the code that reads and links files.

    Entries cached by another version are not used.
    """
    digest = hashlib.sha256()
    for folder in (Path(__file__).parent, Path(documents.__path__[0])):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.digest()


MAX_BATCH_FILES, MAX_BATCH_BYTES = 16, 2_000_000  # files, and bytes of them, that a worker is sent at once


@dataclass(frozen=True)
class SourceFile:
    """The path of a file in its folder and its bytes.

    For Python also its module name, and whether it is a package; for scripts the `own_modules` of the folder.
    """

    path: str
    data: bytes
    module: str = ""
    is_package: bool = False
    modules: Mapping[str, str] = field(default_factory=dict, hash=False)


def extract_file(file: SourceFile) -> FileFacts:
    """Extract the facts of a file.

    Raises BadInput if the file cannot be read and NotInstalled if its parser is missing.
    """
    path, data, ending = file.path, file.data, PurePosixPath(file.path).suffix.lower()
    if ending in PYTHON_ENDINGS:
        return python_facts(_decode_python(data), path, file.module, is_package=file.is_package)
    is_code = ending in (*SETTINGS_ENDINGS, *PROSE_ENDINGS, *SCRIPT_ENDINGS)
    found = extract_text(data, ".txt" if is_code else ending)
    text, remark = re.sub(r"\r\n?", "\n", found.text), found.remark
    if ending in SETTINGS_ENDINGS:
        facts = settings_facts(text, path)
    elif ending in PROSE_ENDINGS:
        facts = prose_facts(text, path)
    elif ending in SCRIPT_ENDINGS:
        from kgot_lab.kgos.extraction.scripts import script_facts

        facts = script_facts(text, path, file.modules)
    else:
        sections, remark = read_file_sections(found, path)
        facts = section_facts(sections, path)
    return facts if not remark else replace(facts, remark="; ".join(filter(None, (remark, facts.remark))))


def facts_or_error(file: SourceFile) -> FileFacts | str:
    """Extract the facts of a file, or return why it cannot be read."""
    try:
        return extract_file(file)
    except (BadInput, NotInstalled) as error:
        return str(error)


def extract_batch(version: bytes, files: Sequence[SourceFile]) -> list[FileFacts | str]:
    """Extract the facts of some files, or why one cannot be read, as the task of a worker.

    Raises LabError if the caller has another version of the code, which would produce another graph.
    """
    if version != extraction_version():
        raise LabError("a worker reads files by another version of kgot_lab: install the same on each")
    return list(map(facts_or_error, files))


def split_batches(files: Iterable[SourceFile]) -> list[list[SourceFile]]:
    """Split files into the batches that are sent to workers."""
    batches: list[list[SourceFile]] = []
    size = 0
    for file in files:
        if not batches or len(batches[-1]) == MAX_BATCH_FILES or size + len(file.data) > MAX_BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(file)
        size += len(file.data)
    return batches


def _decode_python(data: bytes) -> str:
    """Decode a Python file by the encoding that it declares, or as UTF-8.

    Raises BadInput if it cannot be decoded.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return re.sub(r"\r\n?", "\n", data.decode(encoding))
    except SyntaxError as error:
        not_utf8 = "is not UTF-8, and declares no other encoding"
        problem = not_utf8 if "invalid or missing" in str(error) else f"does not parse: {error}"
        raise BadInput(problem) from None
    except LookupError as error:
        raise BadInput(f"does not parse: {error}") from None
    except UnicodeDecodeError as error:
        detail = f"{error.reason} at byte {error.start + 1:,}"
        raise BadInput(f"is not {encoding} ({detail}), and declares no other encoding") from None
