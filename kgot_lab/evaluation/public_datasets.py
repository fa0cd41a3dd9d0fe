"""Public data sets, fetched by ir_datasets (MacAvaney et al. 2021): BEIR and some hundreds of others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from kgot_lab.errors import BadInput, LabError, NotInstalled, UnknownName
from kgot_lab.evaluation.dataset import Dataset, Judged, assembled
from kgot_lab.types import Document, Query

ANY = "beir/scifact, or another id that ir_datasets knows"


def fetch_dataset(name: str, others: Iterable[str] = ()) -> Dataset:
    """A data set by its ir_datasets id, fetched at the first use; where only "<name>/test" has judgements,
    that one.

    Judgements of documents that are not in the collection, as some sets have them, are left out and counted
    in `notes`. Raises UnknownName (which lists `others` too), NotInstalled("bench"), or BadInput for a set
    without judgements and for files that cannot be fetched or are broken: it says which file to put where, or
    to delete. A failed fetch leaves nothing that a later one trips over.
    """
    try:
        import ir_datasets
    except ImportError:
        if "/" not in name:  # a slip in a bundled name is likelier than one of the few ids without a slash
            raise UnknownName("data set", name, [*others, ANY]) from None
        raise NotInstalled("bench", "ir_datasets") from None
    except OSError as error:
        raise BadInput(
            f"ir_datasets cannot use its folder ({error}); name another one in the variable IR_DATASETS_HOME"
        ) from error
    name, source = _judged_source(ir_datasets, name, others)
    files = list(_files(ir_datasets, name))
    _check(name, files)
    try:
        return _read(name, source)
    except LabError:
        raise
    except Exception as error:  # whatever a download, an archive or a parser raises: the remedy is the same
        _check(name, files)
        raise BadInput(_remedy(name, files, error)) from error


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
        raise UnknownName("data set", name, siblings or [*others, ANY])
    below = [id for id in siblings if id.startswith(f"{name}/") and ir_datasets.load(id).has_qrels()]
    raise BadInput(
        f"{name} has no judgements to measure with" + (f"; these have: {', '.join(below)}" if below else "")
    )


def _read(name: str, source: Any) -> Dataset:
    documents = [_document(each) for each in source.docs_iter()]
    queries = [Query(_words(each), each.query_id) for each in source.queries_iter()]
    judged = [
        Judged(f"judgement {row}", each.query_id, each.doc_id, each.relevance)
        for row, each in enumerate(source.qrels_iter(), 1)
    ]
    return assembled(name, documents, queries, judged, missing="drop")


def _document(each: Any) -> Document:
    title = getattr(each, "title", "") if hasattr(each, "text") else ""  # a default text has the title in it
    return Document(each.doc_id, _words(each), title or "")


def _words(each: Any) -> str:
    return str(each.text if hasattr(each, "text") else each.default_text())


# --- when it does not work
# --------------------------------------------------------------------------------------------


class Source(NamedTuple):
    """A file that a data set is read from: where it stands, where it comes from, and its MD5."""

    path: Path
    url: str
    md5: str


def _files(ir_datasets: ModuleType, name: str) -> Iterator[Source]:
    """The files of a data set, by ir_datasets' own table of downloads."""
    top, *parts = name.split("/")
    entry = ir_datasets.util.DownloadConfig.contents().get(top, {})
    for part in ("/".join(parts[:2]), *parts):  # a few keys hold a slash
        entry = entry.get(part, entry)
    home = Path(ir_datasets.util.home_path())
    for each in [entry] if "url" in entry or "instructions" in entry else entry.values():
        if isinstance(each, dict) and ("url" in each or "instructions" in each):
            md5 = each.get("expected_md5", "")
            path = home / top / each["cache_path"] if "cache_path" in each else home / "downloads" / md5
            yield Source(path, each.get("url", ""), md5)


def _check(name: str, files: Iterable[Source]) -> None:
    for file in files:
        if file.md5 and file.path.is_file() and (found := _md5(file.path)) != file.md5:
            raise BadInput(
                f"{file.path} is not the file that {name} needs (MD5 {found}, not {file.md5}): delete it, then load again"
            )


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _remedy(name: str, files: Iterable[Source], error: Exception) -> str:
    reason = f"{type(error).__name__}: {str(error)[:120]}"
    absent = [file for file in files if not file.path.is_file()][:6]
    if not absent:
        return f"{name} cannot be read ({reason}); delete {', '.join(sorted({str(file.path.parent) for file in files}))} and load again"
    wanted = "; ".join(
        f"{file.url or 'the file its owners give out'} as {file.path} (MD5 {file.md5})" for file in absent
    )
    beir = "; or unpack it and read it with from_beir(folder)" if name.startswith("beir/") else ""
    return f"{name} cannot be fetched ({reason}). Where there is no network, put there by hand: {wanted}; then load again{beir}"
