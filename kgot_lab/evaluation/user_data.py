"""Your own documents, queries and judgements as a data set: from a BEIR folder."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import HIGHEST_GRADE, Dataset
from kgot_lab.io.files import require_narrow
from kgot_lab.types import Document, Json, Query

if TYPE_CHECKING:
    pass

ID = ("id", "_id", "doc_id", "docid", "docno", "query_id", "qid")
TEXT = ("text", "query", "question", "contents", "body")
TITLE = ("title",)
QUERY = ("query", "query_id", "query-id", "qid")
DOCUMENT = ("document", "doc_id", "corpus-id", "docid", "docno")
GRADE = ("grade", "score", "relevance", "rel", "label")


class SourceRow(NamedTuple):
    """Some named values, and where they stand: "corpus.jsonl, line 3"."""

    where: str
    values: Mapping[str, Json]


# --- a BEIR folder
# ----------------------------------------------------------------------------------------------------


def from_beir(folder: Path | str, split: str = "test", *, missing: str = "raise") -> Dataset:
    """The data set in a folder laid out as BEIR has it (Thakur et al. 2021).

    corpus.jsonl holds a document a line with _id, text and perhaps title; queries.jsonl _id and text;
    qrels/<split>.tsv, or qrels.tsv, query id, document id and grade between tabs, with or without a head.
    Each may be gzipped (.gz).

    Grades are whole numbers, and above 0 is relevant. A judgement of an unknown query or document raises, or
    with missing="drop" is left out. A query without a relevant document cannot be scored and is left out as
    well. What was left out is counted in the data set's `notes`. Raises BadInput.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInput(
            f"{folder} is not a folder; from_beir() takes one that holds corpus.jsonl, queries.jsonl and qrels/{split}.tsv"
        )
    _check_split(split)
    documents = _documents(_json_rows(_present(folder, "corpus.jsonl")))
    queries = _queries(_json_rows(_present(folder, "queries.jsonl")))
    judged = _judged(_tsv_rows(_present(folder, f"qrels/{split}.tsv", "qrels.tsv")))
    return assembled(f"{folder.resolve().name}/{split}", documents, queries, judged, missing=missing)


def _check_split(split: str) -> None:
    if not re.fullmatch(r"\w[\w.-]*", split):  # no separator: a path could leave the folder
        raise BadInput(
            f"the split {split!r} is not the name of a file in qrels/; give one such as 'test', 'dev' or 'train'"
        )


def _present(folder: Path, *names: str) -> Path:
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    splits = sorted({path.name.split(".tsv")[0] for path in (folder / "qrels").glob("*.tsv*")})
    others = f"; the splits there are {', '.join(splits)}" if names[0].startswith("qrels/") and splits else ""
    raise BadInput(f"{folder} has no {' or '.join(names)} (nor the same with .gz){others}")


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Where a line stands, and the line: those that are not blank."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            require_narrow(file.peek(4096), path.name)
            for number, line in enumerate(file, start=1):
                where = f"{path.name}, line {number}"
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise BadInput(
                        f"{where}: not UTF-8 ({error.reason} at byte {error.start}); save the file as UTF-8"
                    ) from None
                if text.strip():
                    yield where, text
    except (EOFError, zlib.error, OSError) as error:  # a gzip file that is none is an OSError
        raise BadInput(
            f"{path.name} cannot be read to its end ({error}); if it was downloaded, download it again"
        ) from error


def _json_rows(path: Path) -> Iterator[SourceRow]:
    for where, line in _lines(path):
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{where}: not JSON ({error}); every line must be one object") from None
        if not isinstance(values, dict):
            raise BadInput(
                f'{where}: {line[:60]} is not a JSON object; write one such as {{"_id": "d1", "text": "..."}}'
            )
        yield SourceRow(where, values)


def _tsv_rows(path: Path) -> Iterator[SourceRow]:
    for number, (where, line) in enumerate(_lines(path)):
        parts = line.split("\t")
        if len(parts) != 3:
            raise BadInput(
                f"{where}: {len(parts)} columns; three are expected between tabs: query id, document id, grade"
            )
        if number == 0 and re.match(r"[A-Za-z]", parts[2]):
            continue  # the head
        yield SourceRow(
            where, {"query": parts[0].strip(), "document": parts[1].strip(), "grade": parts[2].strip()}
        )


# --- rows into a data set
# ---------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """That a document has a grade for a query, and where that stands."""

    where: str
    query: str
    document: str
    grade: int


def assembled(
    name: str,
    documents: Sequence[Document],
    queries: Sequence[Query],
    judged: Iterable[Judged],
    *,
    missing: str = "raise",
) -> Dataset:
    """A data set of parts that fit each other; `missing` and what is left out as in from_beir. Raises
    BadInput.
    """
    if missing not in ("raise", "drop"):
        raise BadInput(f"missing is 'raise' or 'drop', not {missing!r}")
    _unique("documents", [document.id for document in documents])
    _unique("queries", [query.id for query in queries])
    known, asked = {document.id for document in documents}, {query.id for query in queries}
    qrels: dict[str, dict[str, int]] = {}
    strays: list[Judged] = []
    for each in judged:
        if each.query not in asked or each.document not in known:
            strays.append(each)
        elif qrels.setdefault(each.query, {}).setdefault(each.document, each.grade) != each.grade:
            raise BadInput(
                f"{each.where}: query {each.query!r} and document {each.document!r} have another grade before; keep one"
            )
    if strays and missing == "raise":
        raise BadInput(
            f"{_stray(strays, asked)}; mend the data, or leave such judgements out with missing='drop'"
        )
    kept = {id: grades for id, grades in qrels.items() if any(grade > 0 for grade in grades.values())}
    if not kept:
        raise BadInput(
            f"no query of {name} has a relevant document (a grade above 0): there is nothing to measure"
        )
    if silent := [query.id for query in queries if not any(map(str.isalnum, query.text))]:
        raise BadInput(
            f"{len(silent):,} queries have no letter or digit, for example {silent[0]!r}: leave them out"
        )
    scored = tuple(query for query in queries if query.id in kept)
    notes = [f"left out: {_stray(strays, asked)}"] if strays else []
    if len(scored) < len(queries):
        notes.append(f"left out: {len(queries) - len(scored):,} queries without a relevant document")
    return Dataset(
        name, tuple(documents), scored, {query.id: kept[query.id] for query in scored}, notes=tuple(notes)
    )


def _stray(strays: Sequence[Judged], asked: set[str]) -> str:
    first = strays[0]
    what = f"document {first.document!r}" if first.query in asked else f"query {first.query!r}"
    return f"{len(strays):,} judgements of an unknown document or query, the first ({first.where}) of {what}"


def _unique(what: str, ids: Sequence[str]) -> None:
    if not ids:
        raise BadInput(f"there are no {what}; give at least one")
    seen: set[str] = set()
    twice = [id for id in ids if id in seen or seen.add(id)]  # type: ignore[func-returns-value]
    if twice:
        raise BadInput(
            f"{len(twice):,} ids of {what} occur more than once, for example {twice[0]!r}; ids must be unique"
        )


def _documents(rows: Iterable[SourceRow]) -> list[Document]:
    return [Document(_id(row, ID), _text(row, TEXT), _text(row, TITLE, optional=True)) for row in rows]


def _queries(rows: Iterable[SourceRow]) -> list[Query]:
    return [Query(_text(row, TEXT), _id(row, ID)) for row in rows]


def _judged(rows: Iterable[SourceRow]) -> list[Judged]:
    return [Judged(row.where, _id(row, QUERY), _id(row, DOCUMENT), _grade(row)) for row in rows]


def _column(row: SourceRow, names: Sequence[str]) -> str:
    for name in names:
        if name in row.values:
            return name
    raise BadInput(
        f"{row.where}: no column {names[0]!r} (nor {', '.join(map(repr, names[1:]))}); there are {', '.join(row.values)}"
    )


def _text(row: SourceRow, names: Sequence[str], optional: bool = False) -> str:
    if optional and not any(name in row.values for name in names):
        return ""
    column = _column(row, names)
    value = row.values[column]
    if isinstance(value, str):
        return value
    if optional and str(value) in ("None", "nan", "<NA>"):  # as JSON and pandas have a title that is missing
        return ""
    raise BadInput(f"{row.where}: {column} is {value!r}, not a text; give a text, or leave the row out")


def _id(row: SourceRow, names: Sequence[str]) -> str:
    column = _column(row, names)
    value = row.values[column]
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str) and value.strip():
        return value
    raise BadInput(f"{row.where}: {column} is {value!r}; an id is a text or a whole number")


def _grade(row: SourceRow) -> int:
    column = _column(row, GRADE)
    value = row.values[column]
    try:
        number = float(value) if isinstance(value, str | Real) else float("nan")
    except ValueError:
        number = float("nan")
    if not number.is_integer() or abs(number) > HIGHEST_GRADE:
        raise BadInput(
            f"{row.where}: {column} is {value!r}; a grade is a whole number up to {HIGHEST_GRADE:,}, and above 0 means relevant"
        )
    return int(number)
