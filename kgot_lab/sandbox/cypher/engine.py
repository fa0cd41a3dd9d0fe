"""Start ArcadeDB and its Java in this process, and access types, and records by number."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

StoredProperties = dict[str, Any]
_NO_LABEL = "~NO_LABEL~"  # the engine's name for the type of nodes without labels
OWN_PREFIX = "\u00a4"  # first character of types not named after their label or relation
_ROWS_PER_BATCH = 100_000  # rows that are passed to Java in one text
_MIN_INDEXED = 100  # nodes of one label from which on an index finds them by id
_MAX_INDEXED_LENGTH = 2_000  # characters of an id that an index accepts


@dataclass(frozen=True)
class NodeRecord:
    """A node as stored by the engine."""

    rid: str
    type: str
    labels: tuple[str, ...]
    stored: StoredProperties


@dataclass(frozen=True)
class EdgeRecord:
    """An edge as stored by the engine, with its ends by record number."""

    rid: str
    type: str
    source: str
    target: str
    stored: StoredProperties


class Database:
    """One graph in a new folder.

    A type is the engine's term for a label, a set of labels or a relation.
    """

    def __init__(self, folder: Path):
        import jpype

        self.java: Callable[[str], Any] = jpype.JClass
        self.throwable: Any = jpype.JException
        self.db = self.java("com.arcadedb.database.DatabaseFactory")(str(folder)).create()
        self.java("java.util.logging.LogManager").getLogManager().reset()  # no more log output
        self._schema = self.db.getSchema()
        self._array = jpype.JArray(jpype.JObject)
        self._rid = self.java("com.arcadedb.database.RID")
        self._json = self.java("com.arcadedb.serializer.json.JSONObject")
        self.vertex, self.link = self.java("com.arcadedb.graph.Vertex"), self.java("com.arcadedb.graph.Edge")
        self._out = self.java("com.arcadedb.graph.Vertex$DIRECTION").OUT
        self._labels = self.java("com.arcadedb.query.opencypher.Labels")
        self._values: dict[Any, Callable[[Any], Any]] = {}
        self._labels_of: dict[str, tuple[str, ...]] = {}

    def close(self) -> None:
        """Drop the database."""
        self.db.drop()

    # --- types ---

    def kind(self, type: str) -> str:
        """Return whether a type is one of "nodes" or of "edges", or "" if there is no such type."""
        if not self._schema.existsType(type):
            return ""
        vertex_type = self.java("com.arcadedb.schema.VertexType")
        return "nodes" if isinstance(self._schema.getType(type), vertex_type) else "edges"

    def is_empty(self, type: str) -> bool:
        """Return whether neither a type nor any of its subtypes has records."""
        return int(self.db.countType(type, True)) == 0

    def drop_type(self, type: str) -> None:
        """Drop a type without records, and its subtypes."""
        for below in list(self._schema.getType(type).getSubTypes()):
            if self._schema.existsType(below.getName()):
                self.drop_type(str(below.getName()))
        self._schema.dropType(type)
        self._labels_of.clear()

    def types(self) -> set[str]:
        """Return the names of all types."""
        return {str(type.getName()) for type in self._schema.getTypes()}

    def node_type(self, labels: Iterable[str], own_name: str = "") -> str:
        """Return the type of nodes with exactly these labels, creating it if it is missing.

        It is named `own_name` if that is given.
        """
        names = self.java("java.util.ArrayList")()
        for label in labels:
            names.add(label)
        if not own_name and len(names):
            return str(self._labels.ensureCompositeType(self._schema, names))
        own_name = own_name or _NO_LABEL
        if not self._schema.existsType(own_name):
            supertypes = [self._schema.getOrCreateVertexType(label) for label in names]
            type = self._schema.createVertexType(own_name)
            for supertype in supertypes:
                type.addSuperType(supertype)
        return own_name

    def edge_type(self, name: str) -> str:
        """Return the type of edges with this name, creating it if it is missing."""
        self._schema.getOrCreateEdgeType(name)
        return name

    def create_id_index(self, type: str, max_id_length: int) -> None:
        """Create an index of a type's nodes by id.

        This is done from some number of nodes on, and unless the longest id is too long for an index.
        """
        if type == _NO_LABEL:
            return
        schema_type = self._schema.getType(type)
        existing = schema_type.getPolymorphicIndexByProperties("id")
        if existing is not None and max_id_length > _MAX_INDEXED_LENGTH:
            self._schema.dropIndex(existing.getName())
        elif (
            existing is None
            and max_id_length <= _MAX_INDEXED_LENGTH
            and int(self.db.countType(type, True)) >= _MIN_INDEXED
        ):
            schema_type.getOrCreateProperty("id", self.java("com.arcadedb.schema.Type").STRING)
            index_type = self.java("com.arcadedb.schema.Schema$INDEX_TYPE")
            schema_type.createTypeIndex(index_type.LSM_TREE, False, "id")

    # --- many records, outside transactions ---

    @contextmanager
    def loading(self, edges: int) -> Iterator[Any]:
        """Open the engine's fastest way to add many new records, of which about `edges` are edges."""
        batch = (
            self.db.batch()
            .withWAL(False)
            .withParallelFlush(False)
            .withExpectedEdgeCount(max(1, edges))
            .build()
        )
        try:
            yield batch
        finally:
            batch.close()

    def load_nodes(self, batch: Any, type: str, rows: list[StoredProperties]) -> list[str]:
        """Add nodes of one type and return their record numbers."""
        create = self.java("com.arcadedb.python.VertexBatcher").createVerticesJson
        parts = [str(create(batch, type, text)) for text in _json_batches(rows)]
        return [rid for part in parts for rid in part.split(";")]

    def load_edges(self, batch: Any, type: str, rows: list[StoredProperties]) -> None:
        """Add edges of one type, whose ends are named by `_src` and `_dst`."""
        create = self.java("com.arcadedb.python.EdgeBatcher").newEdgesJson
        for text in _json_batches(rows):
            create(batch, type, text)

    # --- single records ---

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction that commits at the end, or is rolled back if an error is raised in it."""
        self.db.begin()
        try:
            yield
        except BaseException:
            self.db.rollback()
            raise
        self.db.commit()

    def node(self, rid: str) -> NodeRecord:
        """Return a node in its current state."""
        return self.node_of(self.record(rid))

    def add_node(self, type: str, stored: StoredProperties) -> str:
        """Add a node and return its record number."""
        node = self.db.newVertex(type)
        node.set(self._map(stored)).save()
        return str(node.getIdentity())

    def change_node(self, rid: str, type: str, stored: StoredProperties) -> str:
        """Replace the type and properties of a node and return its record number, which may be new.

        Its edges stay.
        """
        if str(self.record(rid).getTypeName()) != type:
            rid = str(self.record(rid).modify().moveToType(type))
        self.change(rid, stored)
        return rid

    def add_edge(self, type: str, source: str, target: str, stored: StoredProperties) -> None:
        """Add an edge between two nodes."""
        entries = self._map(stored).entrySet()
        pairs = [item for entry in entries for item in (entry.getKey(), entry.getValue())]
        self.record(source).newEdge(type, self._rid(target), self._array(pairs))

    def change(self, rid: str, stored: StoredProperties) -> None:
        """Replace the properties of a record."""
        changed = self.record(rid).modify()
        names = _escape_names(stored)
        for name in [name for name in changed.getPropertyNames() if str(name) not in names]:
            changed.remove(name)
        changed.set(self._map(stored)).save()

    def remove(self, rid: str) -> None:
        """Remove a record, and with a node its edges."""
        self.db.deleteRecord(self.record(rid))

    def edges_between(self, type: str, source: str, target: str) -> list[EdgeRecord]:
        """Return the edges of one type from one node to another."""
        if self.kind(type) != "edges":
            return []
        edges = self.record(source).getEdges(self._out, type)
        return [self.edge_of(edge) for edge in edges if str(edge.getIn()) == target]

    def edges_at(self, rid: str) -> list[EdgeRecord]:
        """Return all incoming and outgoing edges of a node, a loop once."""
        edges = self.record(rid).getEdges()
        return list({str(edge.getIdentity()): self.edge_of(edge) for edge in edges}.values())

    def record(self, rid: str) -> Any:
        """Return a record as a Java object."""
        return self.db.lookupByRID(self._rid(rid), True)

    def exists(self, rid: str) -> bool:
        """Return whether there is a record with this number."""
        return bool(self.db.existsRecord(self._rid(rid)))

    def _map(self, stored: StoredProperties) -> Any:
        return self._json(json.dumps(_escape_names(stored))).toMap()

    # --- from Java to Python ---

    def node_of(self, record: Any) -> NodeRecord:
        """Convert a Java object to a node."""
        type = str(record.getTypeName())
        if type not in self._labels_of:
            names = [str(name) for name in self._labels.getLabels(record)]
            own = {name for name in names if name.startswith(OWN_PREFIX) and name[1:].isdigit()}
            self._labels_of[type] = tuple(name for name in names if name not in own)
        properties = _unescape_names(self.value(record.propertiesAsMap()))
        return NodeRecord(str(record.getIdentity()), type, self._labels_of[type], properties)

    def edge_of(self, record: Any, only: str = "") -> EdgeRecord:
        """Convert a Java object to an edge, with only one of its properties if `only` names it."""
        stored = {} if only else _unescape_names(self.value(record.propertiesAsMap()))
        if only and record.has(only):
            stored = {only: self.value(record.get(only))}
        parts = (record.getIdentity(), record.getTypeName(), record.getOut(), record.getIn())
        rid, type, source, target = map(str, parts)
        return EdgeRecord(rid, type, source, target, stored)

    def value(self, item: Any) -> Any:
        """Convert a Java value to plain Python.

        Nodes and edges become records, a path the list of both, dates and similar types text.
        """
        if item is None:
            return None
        kind = type(item)
        if kind not in self._values:
            self._values[kind] = self._converter(item)
        return self._values[kind](item)

    def _converter(self, item: Any) -> Callable[[Any], Any]:
        converters: tuple[tuple[str, Callable[[Any], Any]], ...] = (
            ("java.lang.String", str),
            ("java.lang.Boolean", bool),
            ("java.lang.Double", float),
            ("java.lang.Float", float),
            ("java.math.BigDecimal", lambda number: float(str(number))),
            ("java.lang.Number", lambda number: int(str(number))),
            ("com.arcadedb.graph.Vertex", self.node_of),
            ("com.arcadedb.graph.Edge", self.edge_of),
            (
                "com.arcadedb.query.opencypher.traversal.TraversalPath",
                lambda path: list(map(self.value, path.toAlternatingList())),
            ),
            ("com.arcadedb.query.sql.executor.Result", lambda result: self.value(result.toMap())),
            (
                "java.util.Map",
                lambda map: {str(entry.getKey()): self.value(entry.getValue()) for entry in map.entrySet()},
            ),
            ("java.util.Collection", lambda items: list(map(self.value, items))),
        )
        return next((converter for name, converter in converters if isinstance(item, self.java(name))), str)


def _escape_names(stored: StoredProperties) -> StoredProperties:
    """Return properties as the engine stores them.

    The engine loses a property whose name begins with @, so such names get a prefix.
    """
    reserved = ("@", OWN_PREFIX)
    return {OWN_PREFIX + name if name[:1] in reserved else name: value for name, value in stored.items()}


def _unescape_names(stored: StoredProperties) -> StoredProperties:
    return {name.removeprefix(OWN_PREFIX): value for name, value in stored.items()}


def _json_batches(rows: list[StoredProperties]) -> Iterator[str]:
    for start in range(0, len(rows), _ROWS_PER_BATCH):
        yield json.dumps([_escape_names(row) for row in rows[start : start + _ROWS_PER_BATCH]])


# Start the Java virtual machine of ArcadeDB's package in this process.
#

# a fast start and little memory besides the heap; no file is written except the database, not even the log
# that the engine would keep in the working directory
_JAVA_OPTIONS = (
    "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto", "-Xrs", "-XX:ErrorFile=/dev/null",
    "-XX:-CreateCoredumpOnCrash", "-XX:+DisplayVMOutputToStderr", "-Djava.awt.headless=true", "-Dfile.encoding=UTF8",
    f"-Djava.util.logging.config.file={os.devnull}", "-Dpolyglot.engine.WarnInterpreterOnly=false", "--enable-native-access=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED", "--add-opens=java.base/java.nio.channels.spi=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)  # fmt: skip
# small pages without a search for gaps load fast, and nothing outlives the worker; no statement can read a
# file or an address
_ENGINE_SETTINGS = {
    "txWAL": "false", "bucketReuseSpaceMode": "low", "bucketDefaultPageSize": "16384",
    "opencypher.loadCsv.allowFileUrls": "false", "opencypher.loadCsv.allowRemoteUrls": "false",
}  # fmt: skip


def start_java(memory_mb: int) -> None:
    """Start the Java virtual machine of the package with this heap size.

    A process can do so only once.
    """
    import jpype

    spec = importlib.util.find_spec("arcadedb_embedded")
    if spec is None or spec.origin is None:
        raise ImportError("arcadedb_embedded")
    package_folder = Path(spec.origin).parent
    settings = [f"-Darcadedb.{name}={value}" for name, value in _ENGINE_SETTINGS.items()]
    jars = sorted(map(str, (package_folder / "jars").glob("*.jar")))
    library = str(package_folder / "jre/lib/server/libjvm.so")
    jpype.startJVM(
        library, f"-Xmx{memory_mb}m", *_JAVA_OPTIONS, *settings, classpath=jars, convertStrings=False
    )
    system = jpype.JClass("java.lang.System")
    system.setOut(system.err)  # standard output is reserved for replies
