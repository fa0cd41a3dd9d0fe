"""Retrieval data sets: documents, queries, and relevance judgements."""

from __future__ import annotations

import gzip
import hashlib
import math
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from kgot_lab.arguments import check_arguments, parse_json
from kgot_lab.errors import (
    BadInput,
    LabError,
    NotInstalled,
    UnknownName,
    describe_value,
    require_known,
    require_unique,
    short_repr,
)
from kgot_lab.io.files import refuse_wide_encoding
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Document, Edge, Json, Query, Triple

Qrels = Mapping[str, Mapping[str, int]]  # query id -> document id -> grade; above 0 is relevant

HIGHEST_GRADE = 1_000_000  # the measures allocate a table up to the highest grade


@check_arguments
@dataclass(frozen=True, repr=False)
class Dataset:
    """Documents, queries and qrels, with optional further data.

    `types` is the type of a query. `triples` are those that a language model extracted from each document.
    `test_ids` are the queries of the held-out test split. `classes` is the equivalence class of a document,
    where two may stand for the same thing. `notes` says what was dropped when the data were read.
    `isomorphic` are the delta edges computed between the documents. `groups` is the group of a query, where
    some are not independent, such as those that share a step. `excluded` are documents to remove from the
    ranking of a query: its own text, and what was not judged. Raises BadInput for qrels of documents or queries that are
    not there, for two documents or queries with one id, and for grades that are no whole numbers.
    """

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    qrels: Qrels
    types: Mapping[str, str] = field(default_factory=dict)
    triples: Mapping[str, tuple[Triple, ...]] = field(default_factory=dict)
    test_ids: frozenset[str] = frozenset()
    classes: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    isomorphic: tuple[Edge, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    excluded: Mapping[str, frozenset[str]] = field(default_factory=dict)
    is_part = False  # whether `test_ids` may name queries of the whole that are not in this part

    def __post_init__(self) -> None:
        ids = [document.id for document in self.documents]
        require_unique(ids, "document ids")
        require_unique([query.id for query in self.queries if query.id], "query ids")
        known = {*ids}
        require_known("query in the qrels", {query.id for query in self.queries}, *self.qrels)
        for query, grades in self.qrels.items():
            if not isinstance(grades, Mapping):
                shape = f"the qrels of {self.name} are a dictionary {{query id: {{document id: grade}}}}"
                raise BadInput(f"{shape}; those of query {query!r} are {describe_value(grades)}")
            if unknown := [id for id in grades if id not in known]:
                reason = f"the qrels of query {query!r} name {short_repr(unknown[0])}"
                raise BadInput(f"{reason}, which is no document of {self.name}")
            for document, grade in grades.items():
                checked_grade(grade, query, document)
        if wordless := [query.id for query in self.queries if not any(map(str.isalnum, query.text))]:
            problem = f"{format_count(len(wordless), 'query', 'queries')} without a letter or digit, for example {wordless[0]!r}"
            raise BadInput(f"{problem}: leave them out")

    def only(self, ids: Collection[str]) -> Dataset:
        """Return a data set with the same documents and a subset of the queries.

        Raises UnknownName for an id that no query has.
        """
        require_known("query", {query.id for query in self.queries}, *ids)
        return with_queries(self, set(ids), self.qrels)

    @property
    def dev(self) -> Dataset:
        """The queries of the dev split, for inspection and tuning."""
        return self.only({query.id for query in self.queries} - self._held_out_ids)

    @property
    def held_out(self) -> Dataset:
        """The queries of the held-out test split."""
        return self.only(self._held_out_ids)

    @property
    def _held_out_ids(self) -> frozenset[str]:
        """The ids of `test_ids` that are here. Raises UnknownName for one that no query of the whole has."""
        ids = frozenset(query.id for query in self.queries)
        if not self.is_part:
            require_known("query of the held-out split", ids, *sorted(self.test_ids))
        return ids & self.test_ids

    def __repr__(self) -> str:
        relevant = sum(grade > 0 for grades in self.qrels.values() for grade in grades.values())
        counts = f"{format_count(len(self.queries), 'query', 'queries')}, {format_count(len(self.documents), 'document')}"
        return f"<{'; '.join((f'{self.name}: {counts}, {relevant:,} relevant pairs', *self.notes))}>"


def with_queries(data: Dataset, ids: Set[str], qrels: Qrels) -> Dataset:
    """Return a data set with some of the queries, whose `test_ids` still names those of the whole test split."""
    part, queries = copy(data), tuple(query for query in data.queries if query.id in ids)
    about = {"qrels": qrels, **{what: getattr(data, what) for what in ("types", "groups", "excluded")}}
    kept = {what: {id: known[id] for id in known if id in ids} for what, known in about.items()}
    vars(part).update(kept, queries=queries, is_part=True)
    return part


def connected_components(held: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Map each item to the least id of its connected component.

    Two items are connected if they share a value, directly or through others.
    """
    import networkx as nx

    links: nx.Graph[tuple[str, str]] = nx.Graph()
    links.add_nodes_from(("item", id) for id in held)
    links.add_edges_from((("item", id), ("value", value)) for id, values in held.items() for value in values)
    parts = ([id for kind, id in part if kind == "item"] for part in nx.connected_components(links))
    return {id: min(part) for part in parts for id in part}


def musique_steps(id: str) -> list[str]:
    """Return the ids of the single-hop questions in the id of a MuSiQue question: 2hop__34734_92852."""
    return id.partition("__")[2].split("_")


def content_id(title: str, text: str) -> str:
    """Return an id that depends only on the title and text of a passage.

    An id that followed the order of the questions would leak the answer to a tie.
    """
    return "p" + hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:8]


def query_splits(dataset: Dataset) -> dict[str, frozenset[str]]:
    """Return the ids of the queries by split: all, dev and test.

    If all queries belong to one split, no other is returned. Without a held-out split the only part is "all".
    """
    everything = frozenset(query.id for query in dataset.queries)
    if not dataset.test_ids:
        return {"all": everything}
    split = {"dev": everything - dataset.test_ids, "test": everything & dataset.test_ids}
    held = {part: ids for part, ids in split.items() if ids}
    return {"all": everything, **held} if len(held) > 1 else held


def checked_qrels(dataset: Dataset) -> dict[str, dict[str, int]]:
    """Return the qrels with integer grades, after checking that a perfect system would score 1.

    Raises BadInput if a query has no qrels or no relevant document.
    """
    name = dataset.name
    checked = dict[str, dict[str, int]]()
    if not dataset.qrels:
        reason = f"{name} has no qrels, so nothing found is right or wrong"
        raise BadInput(f"{reason}; give Dataset(qrels={{query id: {{document id: 1}}}})")
    if without := [query.id for query in dataset.queries if query.id not in dataset.qrels]:
        reason = f"{format_count(len(without), 'query', 'queries')} of {name} without qrels, for example {without[0]!r}"
        raise BadInput(f"{reason}; leave them out with data.only(ids)")
    for query in dataset.queries:
        grades = dataset.qrels[query.id]
        checked[query.id] = {id: checked_grade(grade, query.id, id) for id, grade in grades.items()}
    if unjudged := [query for query, grades in checked.items() if max(grades.values(), default=0) <= 0]:
        counted = format_count(len(unjudged), "query", "queries")
        problem = (
            f"{counted} of {name} without a relevant document (a grade above 0), for example {unjudged[0]!r}"
        )
        raise BadInput(f"{problem}; leave them out with data.only(ids)")
    return checked


def checked_grade(grade: object, query: str, document: str) -> int:
    """Return a grade as an integer. Raises BadInput for anything else."""
    whole = isinstance(grade, Integral) or (isinstance(grade, float) and grade.is_integer())
    if not whole or abs(int(grade)) > HIGHEST_GRADE:  # type: ignore[call-overload]
        wanted = f"a grade is a whole number up to {HIGHEST_GRADE:,}, above 0 for a relevant document"
        wrong = f"document {short_repr(document)} has {describe_value(grade)} for query {query!r}"
        raise BadInput(f"{wanted}; {wrong}")
    return int(grade)  # type: ignore[call-overload, no-any-return]


# Data sets from a folder in BEIR format.

ID_COLUMNS = ("id", "_id", "doc_id", "docid", "docno", "query_id", "qid")
TEXT_COLUMNS = ("text", "query", "question", "contents", "body")
TITLE_COLUMNS = ("title",)


class SourceRow(NamedTuple):
    """A row of named values and its location: "corpus.jsonl, line 3"."""

    where: str
    values: Mapping[str, Json]


# --- a BEIR folder ---


@check_arguments
def from_beir(folder: Path | str, split: str = "test", *, missing: str = "raise") -> Dataset:
    """Load a data set from a folder in BEIR format (Thakur et al. 2021).

    corpus.jsonl has one document a line with _id, text and optionally title. queries.jsonl has _id and text.
    qrels/<split>.tsv, or qrels.tsv, has query id, document id and grade, separated by tabs, with or without a
    header. Each file may be gzipped (.gz).

    Grades are integers, and above 0 is relevant. A judgement of an unknown query or document raises BadInput,
    or is dropped with missing="drop". A query without a relevant document cannot be scored and is dropped
    too. The data set's `notes` count what was dropped. Raises BadInput for a folder or file that is missing
    or malformed.
    """
    folder = Path(folder)
    if not folder.is_dir():
        files = f"corpus.jsonl, queries.jsonl and qrels/{split}.tsv"
        raise BadInput(f"{folder} is not a folder; from_beir() takes one that holds {files}")
    _check_split(split)
    documents = _documents(_json_rows(_find_file(folder, "corpus.jsonl")))
    rows = _json_rows(_find_file(folder, "queries.jsonl"))
    queries = [Query(_text_value(row, TEXT_COLUMNS), _id_value(row, ID_COLUMNS)) for row in rows]
    judged = _judgements(_find_file(folder, f"qrels/{split}.tsv", "qrels.tsv"))
    return build_dataset(f"{folder.resolve().name}/{split}", documents, queries, judged, missing=missing)


def _check_split(split: str) -> None:
    if not re.fullmatch(r"\w[\w.-]*", split):  # no separator: a path could leave the folder
        problem = f"the split {split!r} is not the name of a file in qrels/"
        raise BadInput(f"{problem}; give one such as 'test', 'dev' or 'train'")


def _find_file(folder: Path, *names: str) -> Path:
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    splits = sorted({path.name.split(".tsv")[0] for path in (folder / "qrels").glob("*.tsv*")})
    others = f"; the splits there are {', '.join(splits)}" if names[0].startswith("qrels/") and splits else ""
    form = "a data set is a folder in the format of BEIR: corpus.jsonl, queries.jsonl and qrels/test.tsv"
    raise BadInput(f"{folder} has no {' or '.join(names)} (nor the same with .gz){others}; {form}")


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the location and the text of each line that is not blank."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            refuse_wide_encoding(file.peek(4096), path.name)
            for number, line in enumerate(file, start=1):
                where = f"{path.name}, line {number}"
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    problem = f"{where}: not UTF-8 ({error.reason} at byte {error.start})"
                    raise BadInput(f"{problem}; save the file as UTF-8") from None
                if text.strip():
                    yield where, text
    except (EOFError, zlib.error, OSError) as error:  # an invalid gzip file raises OSError
        problem = f"{path.name} cannot be read to its end ({error})"
        raise BadInput(f"{problem}; if it was downloaded, download it again") from error


def _json_rows(path: Path) -> Iterator[SourceRow]:
    for where, line in _lines(path):
        try:
            values = parse_json(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{where}: not JSON ({error}); every line must be one object") from None
        if not isinstance(values, dict):
            problem = f"{where}: {line[:60]} is not a JSON object"
            raise BadInput(f'{problem}; write one such as {{"_id": "d1", "text": "..."}}')
        yield SourceRow(where, values)


def _judgements(path: Path) -> Iterator[Judgement]:
    for number, (where, line) in enumerate(_lines(path)):
        parts = line.split("\t")
        if len(parts) != 3:
            problem = f"{where}: {len(parts)} columns"
            raise BadInput(f"{problem}; three are expected between tabs: query id, document id, grade")
        if number == 0 and re.match(r"[A-Za-z]", parts[2]):
            continue  # the header
        query, document, grade = map(str.strip, parts)
        for name, id in (("query", query), ("document", document)):
            if not id:
                raise BadInput(f"{where}: {name} is {id!r}; an id is a text or a whole number")
        yield Judgement(where, query, document, _parse_grade(grade, where))


# --- rows into a data set ---


class Judgement(NamedTuple):
    """The grade of a document for a query, and its location."""

    where: str
    query: str
    document: str
    grade: int


def build_dataset(
    name: str,
    documents: Sequence[Document],
    queries: Sequence[Query],
    judged: Iterable[Judgement],
    *,
    missing: str = "raise",
) -> Dataset:
    """Build a data set from documents, queries and judgements, and check that they match.

    `missing` and the queries that are dropped are as in from_beir. Raises BadInput as from_beir does.
    """
    require_known("way with missing", ("raise", "drop"), missing)
    _check_unique("documents", [document.id for document in documents])
    _check_unique("queries", [query.id for query in queries])
    known, asked = {document.id for document in documents}, {query.id for query in queries}
    qrels: dict[str, dict[str, int]] = {}
    unmatched: list[Judgement] = []
    for judgement in judged:
        query, document, grade = judgement.query, judgement.document, judgement.grade
        if query not in asked or document not in known:
            unmatched.append(judgement)
        elif qrels.setdefault(query, {}).setdefault(document, grade) != grade:
            pair = f"query {query!r} and document {document!r}"
            raise BadInput(f"{judgement.where}: {pair} have another grade before; keep one")
    if unmatched and missing == "raise":
        problem = _describe_unknown(unmatched, asked)
        raise BadInput(f"{problem}; correct the data, or leave such judgements out with missing='drop'")
    judged_grades = {id: grades for id, grades in qrels.items() if max(grades.values()) > 0}
    if not judged_grades:
        problem = f"no query of {name} has a relevant document (a grade above 0)"
        raise BadInput(f"{problem}: there is nothing to measure")
    scored = tuple(query for query in queries if query.id in judged_grades)
    notes = [f"left out: {_describe_unknown(unmatched, asked)}"] if unmatched else []
    if len(scored) < len(queries):
        notes.append(
            f"left out: {format_count(len(queries) - len(scored), 'query', 'queries')} without a relevant document"
        )
    kept = {query.id: judged_grades[query.id] for query in scored}
    return Dataset(name, tuple(documents), scored, kept, notes=tuple(notes))


def _describe_unknown(strays: Sequence[Judgement], asked: set[str]) -> str:
    first = strays[0]
    what = f"document {first.document!r}" if first.query in asked else f"query {first.query!r}"
    return f"{len(strays):,} judgements of an unknown document or query, the first ({first.where}) of {what}"


def _check_unique(what: str, ids: Sequence[str]) -> None:
    if not ids:
        raise BadInput(f"there are no {what}; give at least one")
    require_unique(ids, f"ids of {what}")


def _documents(rows: Iterable[SourceRow]) -> list[Document]:
    documents = []
    for row in rows:
        title = _text_value(row, TITLE_COLUMNS, optional=True)
        documents.append(Document(_id_value(row, ID_COLUMNS), _text_value(row, TEXT_COLUMNS), title))
    return documents


def _column(row: SourceRow, names: Sequence[str]) -> str:
    for name in names:
        if name in row.values:
            return name
    problem = f"{row.where}: no column {names[0]!r} (nor {', '.join(map(repr, names[1:]))})"
    raise BadInput(f"{problem}; there are {', '.join(row.values)}")


def _text_value(row: SourceRow, names: Sequence[str], optional: bool = False) -> str:
    if optional and not any(name in row.values for name in names):
        return ""
    column = _column(row, names)
    value = row.values[column]
    if isinstance(value, str):
        return value
    if optional and str(value) in ("None", "nan", "<NA>"):  # a missing title in JSON or pandas
        return ""
    raise BadInput(f"{row.where}: {column} is {value!r}, not a text; give a text, or leave the row out")


def _id_value(row: SourceRow, names: Sequence[str]) -> str:
    column = _column(row, names)
    value = row.values[column]
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str) and value.strip():
        return value
    raise BadInput(f"{row.where}: {column} is {value!r}; an id is a text or a whole number")


def _parse_grade(text: str, where: str) -> int:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number.is_integer() or abs(number) > HIGHEST_GRADE:
        problem = f"{where}: grade is {text!r}; a grade is a whole number up to {HIGHEST_GRADE:,}"
        raise BadInput(f"{problem}, and above 0 means relevant")
    return int(number)


# Public data sets, downloaded by ir_datasets (MacAvaney et al. 2021): BEIR and hundreds of others.

ANY_DATASET = "beir/scifact, or another id that ir_datasets knows"


def fetch_dataset(name: str, others: Iterable[str] = ()) -> Dataset:
    """Load a data set by its ir_datasets id, and download it on first use.

    If only "<name>/test" has judgements, that one is loaded. Judgements of documents outside the collection,
    which some sets have, are dropped and counted in `notes`. Raises UnknownName for an unknown id (it lists
    `others` too), NotInstalled("bench") without ir_datasets, and BadInput if a set has no judgements or its
    files are broken or cannot be fetched. A failed download leaves nothing that breaks the next one.
    """
    try:
        import ir_datasets
    except ImportError:
        if "/" not in name:  # more likely a typo in a bundled name
            raise UnknownName("data set", name, [*others, ANY_DATASET]) from None
        raise NotInstalled("bench", "ir_datasets") from None
    except OSError as error:
        problem = f"ir_datasets cannot use its folder ({error})"
        raise BadInput(f"{problem}; name another one in the variable IR_DATASETS_HOME") from error
    name, source = _judged_source(ir_datasets, name, others)
    try:
        return _read_source(name, source)
    except LabError:
        raise
    except Exception as error:  # any error of a download, archive or parser has the same remedy
        kept = ir_datasets.util.home_path() / name.partition("/")[0]
        reason = f"{name} cannot be fetched or read ({type(error).__name__}: {str(error)[:300]})"
        remedy = (
            f"delete {kept} and load again, or unpack the set elsewhere and read it with from_beir(folder)"
        )
        raise BadInput(f"{reason}: {remedy}") from error


def _judged_source(ir_datasets: ModuleType, name: str, others: Iterable[str]) -> tuple[str, Any]:
    for id in (name, f"{name}/test"):
        try:
            source = ir_datasets.load(id)
        except KeyError:
            continue
        if source.has_docs() and source.has_queries() and source.has_qrels():
            return id, source
    siblings = [id for id in ir_datasets.registry if id.startswith(f"{name.split('/')[0]}/")]
    if name not in siblings and name not in ir_datasets.registry:
        raise UnknownName("data set", name, siblings or [*others, ANY_DATASET])
    below = [id for id in siblings if id.startswith(f"{name}/") and ir_datasets.load(id).has_qrels()]
    judged = f"; these have: {', '.join(below)}" if below else ""
    raise BadInput(f"{name} has no judgements to measure with{judged}")


def _read_source(name: str, source: Any) -> Dataset:
    documents = [_document(each) for each in source.docs_iter()]
    queries = [Query(_source_text(each), each.query_id) for each in source.queries_iter()]
    judged = [
        Judgement(f"judgement {row}", each.query_id, each.doc_id, each.relevance)
        for row, each in enumerate(source.qrels_iter(), 1)
    ]
    return build_dataset(name, documents, queries, judged, missing="drop")


def _document(each: Any) -> Document:
    title = getattr(each, "title", "") if hasattr(each, "text") else ""  # a default text includes the title
    return Document(each.doc_id, _source_text(each), title or "")


def _source_text(each: Any) -> str:
    return str(each.text if hasattr(each, "text") else each.default_text())
