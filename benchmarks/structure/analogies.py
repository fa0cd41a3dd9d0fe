"""Data on which analogies are measured: questions with four choices, and pairs of texts that are analogous."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from kgot_lab.benchmark.questions.sets import read_split
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.io.files import bundled_path
from kgot_lab.types import Json

SEED = 20261204  # of every draw below and in cells.py, fixed before the first run
LENGTHS = ("S1", "S10", "S30")  # AnaloBench tells each of its situations in about so many sentences


@dataclass(frozen=True)
class Choice:
    """A question: which of some texts is analogous to the source?

    `answer` is the place of the right one. `kinds` says of each choice what it is: "target" is the right one,
    the others depend on the set. `group` names what must not stand on both sides of a split. `far` says
    whether source and answer come from different fields, where that is known, and `trap` whether the wrong
    choices are "similar" to the source or "dissimilar", where they were drawn so.
    """

    id: str
    source: str
    choices: tuple[str, ...]
    answer: int
    kinds: tuple[str, ...] = ()
    group: str = ""
    far: bool | None = None
    trap: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.answer < len(self.choices):
            raise BadInput(
                f"question {self.id!r} has {len(self.choices)} choices, and its answer is number {self.answer}, counted from 0"
            )
        if self.kinds and len(self.kinds) != len(self.choices):
            raise BadInput(
                f"question {self.id!r} has {len(self.choices)} choices and {len(self.kinds)} kinds; give one for each or none"
            )

    @property
    def cell(self) -> str:
        """Where the question stands in the design of near or far by similar or dissimilar; empty where it was
        not drawn for it.
        """
        return f"{'far' if self.far else 'near'}-{self.trap}" if self.trap and self.far is not None else ""


@dataclass(frozen=True, repr=False)
class Choices:
    """Questions with choices; those of `test_ids` are evaluated last."""

    name: str
    questions: tuple[Choice, ...]
    test_ids: frozenset[str] = frozenset()

    def only(self, ids: Collection[str]) -> Choices:
        """Some of the questions."""
        return replace(self, questions=tuple(question for question in self.questions if question.id in ids))

    @property
    def dev(self) -> Choices:
        """The questions one may look at and tune on."""
        return self.only({question.id for question in self.questions} - self.test_ids)

    @property
    def held_out(self) -> Choices:
        """The test questions."""
        return self.only(self.test_ids)

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text of the questions once, in the order of the alphabet."""
        return tuple(
            sorted({text for question in self.questions for text in (question.source, *question.choices)})
        )

    @property
    def cells(self) -> dict[str, tuple[str, ...]]:
        """The ids of the questions in each cell of the design, where they have one."""
        found: dict[str, tuple[str, ...]] = {}
        for question in self.questions:
            if question.cell:
                found[question.cell] = (*found.get(question.cell, ()), question.id)
        return dict(sorted(found.items()))

    def __repr__(self) -> str:
        counts = ", ".join(f"{cell} {len(ids)}" for cell, ids in self.cells.items())
        size = f"{len(self.questions)} questions, {len(self.held_out.questions)} of them held out"
        return f"<{self.name}: {size}{f'; {counts}' if counts else ''}>"


@dataclass(frozen=True)
class Item:
    """A text and one that is analogous to it.

    Items that share one of their `kin` speak of the same thing: neither's analogue is surely wrong for the
    other. `group` names what must not stand on both sides of a split.
    """

    id: str
    source: str
    analogue: str
    kin: frozenset[str]
    group: str
    held_out: bool = False


def choices(name: str) -> Choices:
    """A set of questions by its name, one of CHOICES; raises UnknownName."""
    if name not in CHOICES:
        raise UnknownName("set of questions", name, CHOICES)
    return CHOICES[name]()


def items(name: str) -> tuple[Item, ...]:
    """The analogous pairs of a set by its name, one of ITEMS; raises UnknownName."""
    if name not in ITEMS:
        raise UnknownName("set of analogous texts", name, ITEMS)
    return ITEMS[name]()


# --- questions ---


def _storyanalogy() -> Choices:
    """Of the wrong choices, "noun" shares nouns with the source and not its structure, and "random" shares
    neither.
    """
    rows = jsonl_rows("storyanalogy-mc/mc.jsonl.gz")
    group_of = linked({row["_id"]: _story(row) for row in rows})
    questions = (
        Choice(
            row["_id"],
            row["source"],
            tuple(row["choices"]),
            row["answer"],
            tuple(row["types"]),
            group=group_of[row["_id"]],
        )
        for row in rows
    )
    return Choices("storyanalogy-mc", tuple(questions), read_test_ids("storyanalogy-mc"))


def _analobench(length: str) -> Choices:
    """Questions are held out by their query; the choices come from all clusters.

    Wrong choices are "other"; in five questions one of them is the query "itself", an accident of the
    published draw that is kept.
    """
    corpus = {row["_id"]: row for row in jsonl_rows("analobench/corpus.jsonl.gz")}
    told, away = length.lower(), read_test_ids("analobench")
    questions: list[Choice] = []
    test_ids: set[str] = set()
    for row in jsonl_rows("analobench/t1_subset.jsonl.gz"):
        query, options = corpus[row["query"]], [corpus[id] for id in row["options"]]
        kinds = ["itself" if option is query else "other" for option in options]
        kinds[row["label"]] = "target"
        texts = tuple(option[told] for option in options)
        questions.append(
            Choice(
                row["_id"],
                query[told],
                texts,
                row["label"],
                tuple(kinds),
                group=f"cluster {query['cluster']}",
            )
        )
        if row["query"] in away:
            test_ids.add(row["_id"])
    return Choices(f"analobench T1 {length}", tuple(questions), frozenset(test_ids))


def _parallelparc(level: str) -> Choices:
    """Of the wrong choices, "distractor" is the right text with the order of its events broken, and "random"
    is of another process.

    The advanced questions also have that random text with its own order broken: "random, broken". That is
    what is left when the other three are found in the list of human-checked pairs.
    """
    pairs = {row["source"]: row for row in jsonl_rows("parallelparc/gold.jsonl.gz")}
    rows, away = jsonl_rows(f"parallelparc/mc_{level}.jsonl.gz"), read_test_ids("parallelparc")
    rest = "random, broken" if level == "advanced" else "random"
    questions: list[Choice] = []
    for row in rows:
        pair, texts = pairs[row["source"]], tuple(row["candidates"])
        known = {pair["random"]: "random", pair["distractor"]: "distractor", pair["target"]: "target"}
        kinds, far = tuple(known.get(text, rest) for text in texts), row["analogy_type"] == "far"
        questions.append(
            Choice(
                row["_id"], row["source"], texts, row["label"], kinds, group=pair["source_subject"], far=far
            )
        )
    test_ids = frozenset(row["_id"] for row in rows if pairs[row["source"]]["_id"] in away)
    return Choices(f"parallelparc {level}", tuple(questions), test_ids)


# --- analogous pairs ---


def _story_items() -> tuple[Item, ...]:
    """Stories that share a text are kin: what is analogous to one may be analogous to the other."""
    rows, away = jsonl_rows("storyanalogy-mc/mc.jsonl.gz"), read_test_ids("storyanalogy-mc")
    stories = {row["_id"]: _story(row) for row in rows}
    group_of = linked(stories)
    return tuple(Item(id, *both, frozenset(both), group_of[id], id in away) for id, both in stories.items())


def _sentence_items() -> tuple[Item, ...]:
    """Each sentence with one mate of its cluster, the first by hash."""
    rows, away = jsonl_rows("analobench/corpus.jsonl.gz"), read_test_ids("analobench")
    found = []
    for row in rows:
        mates = [other for other in rows if other["cluster"] == row["cluster"] and other is not row]
        mate = min(mates, key=lambda other: hashed("mate", row["_id"], other["_id"]))
        cluster = f"cluster {row['cluster']}"
        found.append(
            Item(row["_id"], row["s1"], mate["s1"], frozenset({cluster}), cluster, row["_id"] in away)
        )
    return tuple(found)


def _process_items() -> tuple[Item, ...]:
    """The human-checked pairs; those that share a subject, on whichever side, are kin."""
    rows, away = jsonl_rows("parallelparc/gold.jsonl.gz"), read_test_ids("parallelparc")
    kin = [frozenset({row["source_subject"], row["target_subject"]}) for row in rows]
    return tuple(
        Item(row["_id"], row["source"], row["target"], both, row["source_subject"], row["_id"] in away)
        for row, both in zip(rows, kin, strict=True)
    )


def _story(row: Json) -> tuple[str, str]:
    """A source and its right choice."""
    return row["source"], row["choices"][row["answer"]]


def linked(texts_of: Mapping[str, Collection[str]]) -> dict[str, str]:
    """The group of each id: ids that share a text, or are linked by others that do, are one group, named
    after its first id.

    Some stories of StoryAnalogy occur twice, the second time with source and right choice exchanged.
    """
    named: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for id in sorted(texts_of):
        met = sorted({named[text] for text in texts_of[id] if text in named} | {id})
        members[met[0]] = [*(known for group in met for known in members.pop(group, [])), id]
        named.update({text: met[0] for known in members[met[0]] for text in texts_of[known]})
    return {id: group for group, ids in members.items() for id in ids}


CHOICES: Mapping[str, Callable[[], Choices]] = {
    "storyanalogy-mc": _storyanalogy,
    "analobench T1 S1": lambda: _analobench("S1"),
    "analobench T1 S10": lambda: _analobench("S10"),
    "analobench T1 S30": lambda: _analobench("S30"),
    "parallelparc basic": lambda: _parallelparc("basic"),
    "parallelparc advanced": lambda: _parallelparc("advanced"),
}
ITEMS: Mapping[str, Callable[[], tuple[Item, ...]]] = {
    "storyanalogy-mc": _story_items,
    "analobench S1": _sentence_items,
    "parallelparc": _process_items,
}


# --- files ---


def jsonl_rows(path: str) -> list[Json]:
    """The rows of a bundled file of gzipped JSON lines."""
    with gzip.open(bundled_path(path), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


SPLITS = {"develop": "dev", "locked": "test"}  # what results on file call the splits, and what we do


def read_test_ids(folder: str) -> frozenset[str]:
    """The ids of a bundled data set's test split."""
    return frozenset(read_split(folder, "held_out")["held_out"])


def hashed(*parts: str, seed: int = SEED) -> str:
    """A number, as text, that some parts and a seed decide: to draw by it is to draw by chance, the same each
    time.
    """
    return hashlib.sha256("\0".join((str(seed), *parts)).encode()).hexdigest()
