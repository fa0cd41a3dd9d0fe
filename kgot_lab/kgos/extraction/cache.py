"""What was extracted before, kept on this computer: the facts of files by their bytes, and the graphs of
folders by their files.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kgot_lab.embedding.cache_file import CacheFile, CacheTable
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.extraction.facts import FileFacts
from kgot_lab.kgos.extraction.linking import Joined
from kgot_lab.types import Edge, Json, Node

_FACTS = CacheTable("extracted_files.sqlite", "facts", "json", "BLOB", "json")
_GRAPHS = CacheTable("extracted_graphs.sqlite", "graphs", "json", "BLOB", "json")


class CachedExtraction:
    """Facts and graphs under digests of what they were made of; another version of what makes them finds
    nothing.
    """

    def __init__(self, folder: Path | None):
        self._facts = CacheFile(folder, _FACTS, called="extraction", without="files are read again")
        self._graphs = CacheFile(folder, _GRAPHS, called="graph", without="the files are joined again")

    def facts(self, keys: Iterable[bytes]) -> Mapping[bytes, FileFacts]:
        """The facts under some keys; what is damaged is not there."""
        rows = (row for rows in self._facts.read(list(keys)) for row in rows)
        return {key: facts for key, value in rows if (facts := _facts_from(_unpacked(value))) is not None}

    def keep_facts(self, facts: Mapping[bytes, FileFacts]) -> None:
        """Keep the facts of some files."""
        if facts:
            self._facts.write((key, _packed(each.to_json())) for key, each in facts.items())

    def graph(self, key: bytes) -> Joined | None:
        """The graph under a key."""
        for rows in self._graphs.read([key]):
            for _, value in rows:
                return _graph_from(_unpacked(value))
        return None

    def keep_graph(self, key: bytes, found: Joined) -> None:
        """Keep a graph."""
        nodes = [[each.id, list(each.labels), each.properties] for each in found.graph.nodes]
        edges = [[each.source, each.type, each.target, each.properties] for each in found.graph.edges]
        self._graphs.write(
            [
                (
                    key,
                    _packed(
                        {"nodes": nodes, "edges": edges, "sites": found.sites, "resolved": found.resolved}
                    ),
                )
            ]
        )


def key_of_parts(*parts: str | bytes) -> bytes:
    """A digest of some parts and of the version of the code that reads files."""
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
    """A digest of the code that reads files and joins them: what another version kept is not used."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
