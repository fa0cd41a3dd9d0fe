"""Near or far analogies among similar or dissimilar wrong choices: questions drawn by a rule that was fixed
before any run.

A system that follows the surface does well where the analogue is near and the wrong choices are dissimilar,
one that flees from it does well where it is the other way round; only one that sees structure does well in
all four cells.

The rule. The items are those of one part of a set, dev or test. An item is near where the raw
similarity of its source and its analogue is at or above the median over the items, else far. Wrong choices
are the analogues of other items: each text is then a right answer as well as a wrong one, so no trait of a
text alone tells which it is (broken texts and sources, which are never right, would give themselves away).
Dev items are asked among themselves, test ones among all: a third of a set has too few texts, and
nothing is learnt from texts that were seen before. Kin of the item is left aside. Of what remains, "similar"
choices share a noun with the source and lie at or above the median raw similarity to it, "dissimilar" ones
share none and lie below; three of each are drawn by hash.

Similar choices always share a noun and the analogues of short texts seldom do, so there a veto on shared
nouns does well in all four cells. Hence a third kind: "matched" choices share a noun exactly if the analogue
does, lie within TOLERANCE of its raw similarity, and as many of them lie above it as was drawn by hash from 0
to 3. The place of the analogue by raw similarity is then a matter of chance over all matched questions, and
so is what follows from it and from shared nouns; not among the near ones alone, where items that lack
neighbours above them drop out.

Where there are not enough choices, the item is left out of that cell and counted. The order of the four
choices goes by hash too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.structure.analogies import SEED, Choice, Choices, Item, hashed, items
from benchmarks.structure.nouns import NounsOf
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.significance import Numbers

FOUR = ("similar", "dissimilar")  # the traps of the four cells
WRONG = 3  # wrong choices of a question
TOLERANCE = 0.1  # of raw similarity


@dataclass(frozen=True, repr=False)
class Cells:
    """The questions drawn, how many items each cell had to leave out, and the raw similarity from which on an
    item is near.
    """

    choices: Choices
    left_out: Mapping[str, int]
    median: float

    @property
    def counts(self) -> dict[str, int]:
        """How many questions each cell has."""
        drawn = self.choices.cells
        return {cell: len(drawn.get(cell, ())) for cell in self.left_out}

    def __repr__(self) -> str:
        parts = (f"{cell} {count} (left out {self.left_out[cell]})" for cell, count in self.counts.items())
        return f"<{self.choices.name}: {', '.join(parts)}; near from {self.median:.3f} on>"


@dataclass(frozen=True)
class Pool:
    """What an item's wrong choices are drawn from: texts, their raw similarity to the source, and whether
    they share a noun with it.
    """

    item: Item
    texts: tuple[str, ...]
    similarity: Numbers
    shares: NDArray[np.bool_]
    own: float  # similarity of the analogue
    own_shares: bool

    def drawn(self, mask: NDArray[np.bool_], count: int, seed: int) -> list[str]:
        """The first so many, by hash, of the texts that a mask lets through; fewer where there are fewer."""
        let = [text for text, through in zip(self.texts, mask, strict=True) if through]
        return sorted(let, key=lambda text: hashed("draw", self.item.id, text, seed=seed))[:count]


def cells_of(
    name: str,
    embedder: Embedder,
    nouns: NounsOf,
    *,
    opened: bool = False,
    traps: Sequence[str] = FOUR,
    seed: int = SEED,
) -> Cells:
    """The questions of the four cells, or those with other `traps`, of a set in ITEMS: of its dev part,
    or of the test one.
    """
    every = items(name)
    asked = [item for item in every if item.held_out is opened]
    title = f"{name} {'cells' if tuple(traps) == FOUR else ' and '.join(traps)}"
    return cells(
        pools_of(asked, embedder, nouns, among=every if opened else asked), name=title, traps=traps, seed=seed
    )


def pools_of(
    asked: Sequence[Item], embedder: Embedder, nouns: NounsOf, *, among: Sequence[Item] = ()
) -> list[Pool]:
    """For each item the analogues of the items that are no kin of it, in the order of the alphabet; `nouns`
    gives a text's noun lemmas.

    They come from the items asked, or from those `among` which they are asked. Raises BadInput for items of
    both parts, fewer than two of them, or an id that occurs twice.
    """
    among = among or asked
    if (
        len(asked) < 2
        or len({item.held_out for item in asked}) > 1
        or len({item.id for item in asked}) < len(asked)
    ):
        raise BadInput(
            "cells are drawn for two items or more, each with an id of its own, all of them held out or none"
        )
    texts = sorted({text for item in (*asked, *among) for text in (item.source, item.analogue)})
    row_of, matrix = {text: row for row, text in enumerate(texts)}, embedder.embed(texts).astype(np.float64)
    noun_sets = {text: nouns(text) for text in texts}
    found = []
    for item in asked:
        others = {other.analogue for other in among if not other.kin & item.kin} - {
            item.source,
            item.analogue,
        }
        pool, own = tuple(sorted(others)), noun_sets[item.source]
        similarity = matrix[[row_of[text] for text in (item.analogue, *pool)]] @ matrix[row_of[item.source]]
        shares = [bool(own & noun_sets[text]) for text in (item.analogue, *pool)]
        found.append(
            Pool(item, pool, similarity[1:], np.array(shares[1:], bool), float(similarity[0]), shares[0])
        )
    return found


def cells(pools: Sequence[Pool], *, name: str, traps: Sequence[str] = FOUR, seed: int = SEED) -> Cells:
    """Draw the questions; raises UnknownName for a trap."""
    for trap in traps:
        if trap not in DRAWS:
            raise UnknownName("trap", trap, DRAWS)
    median = float(np.median([pool.own for pool in pools]))
    left_out = Counter({f"{side}-{trap}": 0 for side in ("near", "far") for trap in traps})
    questions: list[Choice] = []
    for pool in pools:
        for trap in traps:
            wrong, far = DRAWS[trap](pool, seed), pool.own < median
            if len(wrong) == WRONG:
                questions.append(question_of(pool.item, wrong, trap, far=far, seed=seed))
            else:
                left_out[f"{'far' if far else 'near'}-{trap}"] += 1
    test = frozenset(question.id for question in questions if pools[0].item.held_out)
    return Cells(Choices(name, tuple(questions), test), dict(left_out), median)


def question_of(item: Item, wrong: Sequence[str], trap: str, *, far: bool, seed: int = SEED) -> Choice:
    """The analogue among wrong choices, in an order that goes by hash."""
    id = f"{item.id} {trap}"
    order = tuple(sorted((item.analogue, *wrong), key=lambda text: hashed("order", id, text, seed=seed)))
    kinds = tuple("target" if text == item.analogue else trap for text in order)
    return Choice(
        id, item.source, order, order.index(item.analogue), kinds, group=item.group, far=far, trap=trap
    )


def _similar(pool: Pool, seed: int) -> list[str]:
    return pool.drawn(_upper(pool) & pool.shares, WRONG, seed)


def _dissimilar(pool: Pool, seed: int) -> list[str]:
    return pool.drawn(~_upper(pool) & ~pool.shares, WRONG, seed)


def _matched(pool: Pool, seed: int) -> list[str]:
    alike = (np.abs(pool.similarity - pool.own) <= TOLERANCE) & (pool.shares == pool.own_shares)
    higher = pool.similarity >= pool.own
    above = int(hashed("above", pool.item.id, seed=seed), 16) % (WRONG + 1)
    return pool.drawn(alike & higher, above, seed) + pool.drawn(alike & ~higher, WRONG - above, seed)


DRAWS: Mapping[str, Callable[[Pool, int], list[str]]] = {
    "similar": _similar,
    "dissimilar": _dissimilar,
    "matched": _matched,
}


def _upper(pool: Pool) -> NDArray[np.bool_]:
    return pool.similarity >= np.median(pool.similarity) if len(pool.texts) else np.zeros(0, bool)
