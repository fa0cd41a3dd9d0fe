"""Retrieval sets beside the multi-hop questions: analogous texts, and the nodes of the curated graph."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable

from kgot_lab.evaluation.dataset import Dataset, content_id
from kgot_lab.io.files import bundled
from kgot_lab.kgos.methods.cookbook import cookbook
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.types import Document, Json, Query

_Pairs = list[tuple[str, str, str, frozenset[str]]]  # id, text, analogous text, what both are about


def stories() -> Dataset:
    """Load StoryAnalogy: each story asks for its analogue among all stories of the set."""
    rows = _rows("storyanalogy-mc/mc.jsonl.gz")
    right = [(row["_id"], row["source"], row["choices"][row["answer"]]) for row in rows]
    pairs = [(id, source, target, frozenset((source, target))) for id, source, target in right]
    texts = [text for row in rows for text in (row["source"], *row["choices"])]
    return _analogies("storyanalogy-mc", pairs, texts)


def processes() -> Dataset:
    """Load ParallelPARC: each description of a process asks for analogous processes."""
    pairs = [
        (row["_id"], row["source"], row["target"], frozenset((row["source_subject"], row["target_subject"])))
        for row in _rows("parallelparc/gold.jsonl.gz")
    ]
    return _analogies("parallelparc", pairs, [text for _, *both, _ in pairs for text in both])


def curated_graph() -> Dataset:
    """Load the queries of the curated graph; documents are its nodes, relevant the nodes that answer."""
    rows, locked = list[Json](), set[str]()
    for half in ("tuning", "locked"):
        lines = bundled(f"cookbook/queries_{half}.jsonl").read_text(encoding="utf-8").splitlines()
        answered = [row for row in map(json.loads, lines) if row["strict"]]
        rows += answered
        locked |= {row["id"] for row in answered if half == "locked"}
    return Dataset(
        "cookbook",
        index_of(cookbook()).documents,
        tuple(Query(row["text"], row["id"]) for row in rows),
        {row["id"]: dict.fromkeys(sorted(row["strict"]), 1) for row in rows},
        {row["id"]: row["level"] for row in rows},
        locked=frozenset(locked),
    )


def _analogies(name: str, pairs: _Pairs, texts: Iterable[str]) -> Dataset:
    """Build the data set; excluded from a ranking are the query's own text and texts that were not judged.

    Texts on the same subject were not judged against each other. Analogues of the other split are excluded.
    """
    split = json.loads(bundled(f"{name}/split.json").read_text(encoding="utf-8"))
    held_out, about = set(split["locked"]), defaultdict[str, set[str]](set)
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
        locked=frozenset(query for query, (_, part) in asked.items() if part),
        excluded=excluded,
    )


def _rows(path: str) -> list[Json]:
    with gzip.open(bundled(path), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
