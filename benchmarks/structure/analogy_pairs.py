"""Texts as nodes of a graph, and which pairs of them are analogous: few among very many, as in a real graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from benchmarks.structure.analogies import Item, choices, items, jsonl_rows, read_test_ids
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import content_id
from kgot_lab.types import Document

IdPair = tuple[str, str]  # the ids of two documents, in order


@dataclass(frozen=True, repr=False)
class AnalogyPairs:
    """All texts of a set, and the pairs of them that are analogous.

    A pair is judged when one of its `ends` is in this part and it is not `left_out`: pairs left out speak of
    the same thing without being called analogous by anyone. Every other pair counts as not analogous, which
    is an assumption, not a judgement. `test_ids` are the analogous pairs that are evaluated last, `dev_ends`
    and `test_ends` the texts of either part; some are in both.
    """

    name: str
    documents: tuple[Document, ...]
    analogous: frozenset[IdPair]
    left_out: frozenset[IdPair]
    ends: frozenset[str]
    test_ids: frozenset[IdPair] = field(default=frozenset())
    dev_ends: frozenset[str] = field(default=frozenset())
    test_ends: frozenset[str] = field(default=frozenset())

    @property
    def dev(self) -> AnalogyPairs:
        """The pairs one may look at and tune on: those with an end that is not held out. The other texts stay
        in the graph.
        """
        kept = self.analogous - self.test_ids
        return replace(
            self, analogous=kept, left_out=self.left_out | (self.analogous - kept), ends=self.dev_ends
        )

    @property
    def held_out(self) -> AnalogyPairs:
        """The pairs with a test end."""
        kept = self.analogous & self.test_ids
        return replace(
            self, analogous=kept, left_out=self.left_out | (self.analogous - kept), ends=self.test_ends
        )

    def judges(self, first: str, second: str) -> bool:
        """Is it known, or assumed, whether two texts are analogous?"""
        return (
            first != second
            and (first in self.ends or second in self.ends)
            and pair(first, second) not in self.left_out
        )

    @property
    def judged(self) -> int:
        """How many pairs are judged."""
        among, others = len(self.ends), len(self.documents) - len(self.ends)
        out = sum(first in self.ends or second in self.ends for first, second in self.left_out)
        return among * (among - 1) // 2 + among * others - out

    @property
    def prevalence(self) -> float:
        """The share of the judged pairs that are analogous: the precision of edges drawn at random."""
        return len(self.analogous) / self.judged

    def __repr__(self) -> str:
        counts = f"{len(self.documents):,} texts, {len(self.analogous):,} of {self.judged:,} pairs analogous"
        return f"<{self.name}: {counts} ({self.prevalence:.2%})>"


def pairs(name: str) -> AnalogyPairs:
    """A graph's worth of texts by its name, one of PAIRS; raises UnknownName."""
    if name not in PAIRS:
        raise UnknownName("set of pairs", name, PAIRS)
    return PAIRS[name]()


def pair(first: str, second: str) -> IdPair:
    """Two ids in order; raises BadInput where they are the same."""
    if first == second:
        raise BadInput(f"a pair has two ends, and {first!r} is given for both")
    return (first, second) if first < second else (second, first)


def _storyanalogy() -> AnalogyPairs:
    """Sources and choices of all questions; a source and its right choice are analogous."""
    asked = choices("storyanalogy-mc")
    texts = {False: asked.dev.texts, True: asked.held_out.texts}
    return _of_items("storyanalogy-mc pairs", items("storyanalogy-mc"), texts)


def _parallelparc() -> AnalogyPairs:
    """Sources and targets of the human-checked pairs; of a pair of the same subject nobody said whether it is
    analogous.
    """
    found = items("parallelparc")
    texts = {
        part: [text for item in found if item.held_out is part for text in (item.source, item.analogue)]
        for part in (False, True)
    }
    return _of_items("parallelparc pairs", found, texts)


def _analobench() -> AnalogyPairs:
    """The sentences; those of a cluster are analogous."""
    rows, away = jsonl_rows("analobench/corpus.jsonl.gz"), read_test_ids("analobench")
    ids = {row["_id"]: _id(row["s1"]) for row in rows}
    same = [
        (ids[a["_id"]], ids[b["_id"]], a["_id"] in away)
        for a, b in combinations(rows, 2)
        if a["cluster"] == b["cluster"]
    ]
    analogous = frozenset(pair(first, second) for first, second, _ in same)
    test = frozenset(pair(first, second) for first, second, part in same if part)
    documents = _documents(row["s1"] for row in rows)
    parts = [
        frozenset(ids[row["_id"]] for row in rows if (row["_id"] in away) is part) for part in (False, True)
    ]
    return AnalogyPairs(
        "analobench S1 pairs", documents, analogous, frozenset(), frozenset(ids.values()), test, *parts
    )


PAIRS: Mapping[str, Callable[[], AnalogyPairs]] = {
    "storyanalogy-mc pairs": _storyanalogy,
    "analobench S1 pairs": _analobench,
    "parallelparc pairs": _parallelparc,
}


def _of_items(name: str, found: Iterable[Item], texts: Mapping[bool, Iterable[str]]) -> AnalogyPairs:
    """The pairs of some items among texts of the dev part (False) and the test part (True)."""
    found = tuple(found)
    analogous = frozenset(_pair_of(item) for item in found)
    test = frozenset(_pair_of(item) for item in found if item.held_out)
    kin: dict[str, set[str]] = {}
    for item in found:
        for text in (item.source, item.analogue):
            kin.setdefault(_id(text), set()).update(item.kin)
    related = frozenset(pair(*both) for both in _related(kin)) - analogous
    parts = [frozenset(map(_id, texts[part])) for part in (False, True)]
    documents = _documents(text for some in texts.values() for text in some)
    return AnalogyPairs(name, documents, analogous, related, parts[0] | parts[1], test, *parts)


def _related(kin: Mapping[str, set[str]]) -> Iterator[IdPair]:
    """The pairs of ids that are kin."""
    members: dict[str, set[str]] = {}
    for id, names in kin.items():
        for name in names:
            members.setdefault(name, set()).add(id)
    for ids in members.values():
        yield from combinations(sorted(ids), 2)


def _pair_of(item: Item) -> IdPair:
    return pair(_id(item.source), _id(item.analogue))


def _documents(texts: Iterable[str]) -> tuple[Document, ...]:
    """Each text once, in the order of the ids."""
    return tuple(Document(id, text) for id, text in sorted({_id(text): text for text in texts}.items()))


def _id(text: str) -> str:
    return content_id("", text)
