"""Retrieval data sets: documents, queries and relevance judgements."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from kgot_lab.analogy.delta_edges import DELTA_EDGE
from kgot_lab.arguments import check_arguments
from kgot_lab.benchmark.questions.sets import packed_passages, read_judgements, read_packed_rows, read_split
from kgot_lab.errors import BadInput, UnknownName, short_repr
from kgot_lab.evaluation.dataset import (
    Dataset,
    Qrels,
    connected_components,
    content_id,
    from_beir,
    musique_steps,
)
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.types import Document, Edge, Json, Query, Triple

# Retrieval sets besides the multi-hop questions: analogous texts, and the nodes of the curated graph.

_Pairs = list[tuple[str, str, str, frozenset[str]]]  # id, text, analogous text, what both are about


def load_stories() -> Dataset:
    """Load StoryAnalogy: each story asks for its analogue among all stories of the set."""
    rows = list(read_packed_rows("storyanalogy-mc", "mc.jsonl.gz"))
    right = [(row["_id"], row["source"], row["choices"][row["answer"]]) for row in rows]
    pairs = [(id, source, target, frozenset((source, target))) for id, source, target in right]
    texts = [text for row in rows for text in (row["source"], *row["choices"])]
    return _analogy_dataset("storyanalogy-mc", pairs, texts)


def load_processes() -> Dataset:
    """Load ParallelPARC: each description of a process asks for analogous processes."""
    pairs = [
        (row["_id"], row["source"], row["target"], frozenset((row["source_subject"], row["target_subject"])))
        for row in read_packed_rows("parallelparc", "gold.jsonl.gz")
    ]
    return _analogy_dataset("parallelparc", pairs, [text for _, *both, _ in pairs for text in both])


def load_curated_graph() -> Dataset:
    """Load the queries of the curated graph, whose nodes are the documents.

    Relevant are the nodes that answer.
    """
    rows, test_ids = list[Json](), set[str]()
    for half in ("tuning", "locked"):
        lines = bundled_path(f"cookbook/queries_{half}.jsonl").read_text(encoding="utf-8").splitlines()
        answered = [row for row in map(json.loads, lines) if row["strict"]]
        rows += answered
        test_ids |= {row["id"] for row in answered if half == "locked"}
    return Dataset(
        "cookbook",
        graph_index(cookbook()).documents,
        tuple(Query(row["text"], row["id"]) for row in rows),
        {row["id"]: dict.fromkeys(sorted(row["strict"]), 1) for row in rows},
        {row["id"]: row["level"] for row in rows},
        test_ids=frozenset(test_ids),
    )


def _analogy_dataset(name: str, pairs: _Pairs, texts: Iterable[str]) -> Dataset:
    """Build a data set of analogies, where the query's own text and unjudged texts are excluded from
    rankings.

    Texts on the same subject were not judged against each other. Analogues of the other split are excluded.
    """
    held_out, about = set(read_split(name, "held_out")["held_out"]), defaultdict[str, set[str]](set)
    near = {part: defaultdict[str, set[str]](set) for part in (False, True)}
    asked: dict[str, tuple[str, bool]] = {}
    in_test = {frozenset((source, target)) for id, source, target, _ in pairs if id in held_out}
    for id, source, target, subjects in pairs:
        asked[content_id("", source)] = source, id in held_out
        for text, other in ((source, target), (target, source)):
            near[frozenset((source, target)) in in_test][text].add(other)
            for subject in subjects:
                about[subject].add(text)
    kin = defaultdict[str, set[str]](set)
    for some in about.values():
        for text in some:
            kin[text] |= some
    qrels, excluded = dict[str, dict[str, int]](), dict[str, frozenset[str]]()
    for query, (text, part) in asked.items():
        relevant = near[part][text]
        unjudged = (kin[text] | near[not part][text] | {text}) - relevant
        qrels[query] = {content_id("", other): 1 for other in sorted(relevant)}
        excluded[query] = frozenset(content_id("", other) for other in unjudged)
    return Dataset(
        name,
        tuple(Document(id, text) for id, text in sorted((content_id("", text), text) for text in set(texts))),
        tuple(Query(text, query) for query, (text, _) in sorted(asked.items())),
        qrels,
        test_ids=frozenset(query for query, (_, part) in asked.items() if part),
        excluded=excluded,
    )


@check_arguments
def load_dataset(name: str) -> Dataset:
    """Load a data set by name: one of BUNDLED, one of ir_datasets, such as "beir/scifact", or a folder in BEIR format.

    A data set of ir_datasets needs documents, queries and qrels. The suffix of a bundled one selects a
    variant: "musique-498-untitled" has passages without titles, and "musique-498-mixed" searches all bundled
    passages.

    Raises UnknownName, listing the known names, NotInstalled("bench"), and BadInput if the files cannot be
    fetched, saying which files to put where.
    """
    if name in BUNDLED:
        return BUNDLED[name]()
    for ending, changed in ((UNTITLED, remove_titles), (MIXED, over_all_passages)):
        if name.removesuffix(ending) != name and name.removesuffix(ending) in BUNDLED:
            return changed(BUNDLED[name.removesuffix(ending)]())
    if name and Path(name).is_dir():
        return from_beir(Path(name))
    from kgot_lab.evaluation.dataset import fetch_dataset

    try:
        return fetch_dataset(name, (*BUNDLED, *_OTHER_SOURCES))
    except UnknownName as error:
        bundled_names = [f"{each}{ending}" for each in BUNDLED for ending in ("", UNTITLED, MIXED)]
        near = get_close_matches(name, bundled_names, n=1) if set(_OTHER_SOURCES) <= set(error.known) else []
        raise UnknownName("data set", name, error.known, meant=next(iter(near), "")) from None


@check_arguments
def open_dataset(data: Dataset | str | Path) -> Dataset:
    """Return a data set given as itself, by name, or as a folder in BEIR format.

    A bundled name takes precedence over a folder of that name. Raises BadInput for anything else, such as the
    path of a missing folder, and what load_dataset raises.
    """
    if isinstance(data, Dataset):
        return data
    is_path = isinstance(data, Path) or str(data).startswith((".", "/", "~")) or str(data).endswith("/")
    if is_path and not Path(data).is_dir():
        expected = "a folder of yours holds corpus.jsonl, queries.jsonl and qrels/test.tsv"
        raise BadInput(f"there is no folder {short_repr(str(data))}; {expected}")
    return load_dataset(str(data))


# --- bundled ---


def _hop_type(row: Json) -> str:
    return f"{row['hops']} hops"


def _musique() -> Dataset:
    return _read_dataset("musique", "musique-train-100", _hop_type)


def _twowiki() -> Dataset:
    return _read_dataset("2wiki", "2wiki-fastgraphrag-101", lambda row: "")


def _twowiki_thousand() -> Dataset:
    """Load the standard questions of 2WikiMultiHopQA, except eleven, over the passages of 2wiki."""

    def type_of(row: Json) -> str:
        return str(row["type"].replace("_", " "))

    whole = _read_dataset("2wiki-1000", "2wiki-1000", type_of, "2wiki-fastgraphrag-101", "search held_out")
    return replace(whole, groups=connected_components(whole.qrels))


def _musique_dev() -> Dataset:
    return _read_dataset("musique-498", "musique-498", _hop_type, split="search held_out")


def _musique_dev_steps() -> Dataset:
    """Load the single-hop questions that musique-498 was composed of, without repeats.

    The answers of earlier steps are filled in.
    """
    whole, ids = _musique_dev(), _content_ids("musique-498")
    queries: dict[str, Query] = {}
    qrels: dict[str, dict[str, int]] = {}
    groups: dict[str, str] = {}
    for row in read_packed_rows("musique-498", "queries.jsonl.gz"):
        for step, held in zip(musique_steps(row["_id"]), row["decomposition"], strict=True):
            queries.setdefault(step, Query(held["question_resolved"], step))
            qrels.setdefault(step, {})[ids[held["doc_id"]]] = 1
            groups[step] = whole.groups[row["_id"]]
    test_ids = frozenset(step for row in whole.test_ids for step in musique_steps(row))
    of_steps: dict[str, Json] = {
        "queries": tuple(queries.values()),
        "qrels": qrels,
        "test_ids": test_ids,
        "groups": groups,
    }
    return replace(whole, name="musique-498-steps", types={}, **of_steps)


def remove_titles(dataset: Dataset) -> Dataset:
    """Return the data set with untitled passages, like the chunks of a user's folder. Ids do not change."""
    documents = tuple(replace(document, title="") for document in dataset.documents)
    return replace(dataset, name=f"{dataset.name}{UNTITLED}", documents=documents)


def over_all_passages(dataset: Dataset) -> Dataset:
    """Return the questions of a data set over the passages of all four bundled collections.

    Each passage occurs once.
    """
    collections = map(load_dataset, ("hotpotqa", "musique", "2wiki", "musique-498"))
    whole = {document.id: document for collection in collections for document in collection.documents}
    documents = tuple(whole[id] for id in sorted(whole))
    return replace(dataset, name=f"{dataset.name}{MIXED}", documents=documents, isomorphic=())


def _musique_steps() -> Dataset:
    whole = _musique()
    rows = list(read_packed_rows("musique-train-100", "subqueries.jsonl.gz"))
    queries = tuple(Query(row["text"], row["_id"]) for row in rows)
    qrels = _qrels("musique-train-100/subqueries_qrels.tsv", _content_ids("musique-train-100"))
    test_ids = frozenset(row["_id"] for row in rows if row["parent"] in whole.test_ids)
    return replace(whole, name="musique-steps", queries=queries, qrels=qrels, test_ids=test_ids, types={})


# suffixes of data set names: passages without titles, or all bundled passages
UNTITLED, MIXED = ("-untitled", "-mixed")
_OTHER_SOURCES = (
    f"one of the bundled ones with {UNTITLED} or {MIXED} behind its name",
    "your own folder as BEIR has them",
)
BUNDLED: Mapping[str, Callable[[], Dataset]] = {
    "musique": _musique,
    "musique-steps": _musique_steps,
    "2wiki": _twowiki,
    "hotpotqa": lambda: _read_dataset("hotpotqa", "hotpotqa-train-100", lambda row: f"{row['type']}"),
    "2wiki-1000": _twowiki_thousand,
    "musique-498": _musique_dev,
    "musique-498-steps": _musique_dev_steps,
    "cookbook": lambda: replace(load_curated_graph(), isomorphic=_delta_edges("cookbook")),
    "storyanalogy-mc": lambda: replace(load_stories(), isomorphic=_delta_edges("storyanalogy-mc")),
    "parallelparc": lambda: replace(load_processes(), isomorphic=_delta_edges("parallelparc")),
}


def _read_dataset(
    name: str, folder: str, type_of: Callable[[Json], str], passages: str = "", split: str = "held_out"
) -> Dataset:
    """Load the questions of a folder over its passages, or over those of another folder.

    `split` is the test split in its split.json.
    """
    passages = passages or folder
    found = packed_passages(passages)
    ids = {old: document.id for old, document in found.items()}
    documents = sorted(found.values(), key=lambda document: document.id)
    questions = list(read_packed_rows(folder, "queries.jsonl.gz"))
    triples: dict[str, tuple[Triple, ...]] = {}
    if folder == "musique-train-100":
        for row in read_packed_rows(folder, "openie_gpt35.jsonl.gz"):
            triples[ids[row["doc_id"]]] = tuple(Triple(*parts) for parts in row["triples"])
    return Dataset(
        name,
        tuple(documents),
        tuple(Query(row["text"], row["_id"]) for row in questions),
        _qrels(f"{folder}/qrels.tsv", ids),
        {row["_id"]: type_of(row) for row in questions},
        triples,
        frozenset(read_split(folder, split)[split]),
        groups=connected_components({row["_id"]: musique_steps(row["_id"]) for row in questions})
        if name == "musique-498"
        else {},
        isomorphic=_delta_edges(passages),
    )


def _content_ids(folder: str) -> dict[str, str]:
    """Map the ids in a folder to hashes of the content.

    The files number passages in the order of the questions, which would favour the relevant ones in ties.
    """
    return {old: document.id for old, document in packed_passages(folder).items()}


def _delta_edges(folder: str) -> tuple[Edge, ...]:
    """Load the delta edges of a folder's passages, or none if they were not computed."""
    if not (bundled_path(folder) / "delta_edges.jsonl.gz").exists():
        return ()
    _, *rows = read_packed_rows(folder, "delta_edges.jsonl.gz")  # the first line says how they were made
    edges = []
    for row in rows:
        properties = {name: row[name] for name in ("weight", "raw", "skeleton")}
        edges.append(Edge(row["source"], DELTA_EDGE, row["target"], properties))
    return tuple(edges)


def _qrels(path: str, ids: Mapping[str, str]) -> Qrels:
    qrels: dict[str, dict[str, int]] = {}
    for query, document, grade in read_judgements(path):
        qrels.setdefault(query, {})[ids[document]] = grade
    return qrels
