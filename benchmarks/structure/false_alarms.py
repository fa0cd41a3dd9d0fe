"""How often two texts that have nothing to do with each other get a delta edge, by how much they tell; and
how often analogous ones do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from benchmarks.structure.analogies import ITEMS, items
from benchmarks.structure.analogy_pairs import PAIRS, AnalogyPairs, pair, pairs
from benchmarks.structure.instruments import Instruments
from kgot_lab.analogy.delta_edges import embed_texts_and_skeletons
from kgot_lab.analogy.linguistic import analyse_texts
from kgot_lab.analogy.skeletons import make_skeletons
from kgot_lab.embedding.embedder import Matrix
from kgot_lab.similarity.delta import BANDS, DEFAULT_THRESHOLDS, band, count_words, row_cosines
from kgot_lab.types import Json

LEFT_OF_SKELETON = (1, 2, 3, 4, 6, 8, 12, 20)  # words a skeleton holds beside "something": where a bin begins
LONG_TEXTS = (1, 6, 9, 13, 17, 25, 41, 71)  # words of a text
PASSAGES, SENTENCES = "whole texts", "single sentences"
_AT_LOT = 20_000  # pairs drawn for a bin
_ALIGNED = 400  # of those that pass, how many a verifier looks at
_TWELVE, TIMES = 12, 2_000
_WORD = re.compile(r"\w+")

_Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ToldTexts:
    """Texts with the vectors of them and of their skeletons, how much they tell, and whose kin they are."""

    texts: tuple[str, ...]
    raw: Matrix
    skeleton: Matrix
    left: _Rows
    long: _Rows
    group: _Rows
    held_out: NDArray[np.bool_]

    def bands(self, first: _Rows, second: _Rows) -> list[str]:
        """The band of each pair that passes the specified thresholds, "" for one that does not."""
        alike = row_cosines(self.skeleton[first], self.skeleton[second])
        delta = alike - row_cosines(self.raw[first], self.raw[second])
        passed = DEFAULT_THRESHOLDS.are_reached(alike, delta)
        return [band(float(each)) if through else "" for each, through in zip(delta, passed, strict=True)]


def unrelated(tools: Instruments) -> Iterator[dict[str, Json]]:
    """Random pairs of texts of different groups that tell about as much: how many get an edge, and how many
    of these a verifier keeps.
    """
    for kind in (PASSAGES, SENTENCES):
        told = told_texts(tools, kind)
        for measure, steps, values in (
            ("left", LEFT_OF_SKELETON, told.left),
            ("long", LONG_TEXTS, told.long),
        ):
            for low, high in pairwise((*steps, 10_000)):
                for held_out in (False, True):
                    rows = np.flatnonzero((values >= low) & (values < high) & (told.held_out == held_out))
                    if len(rows) >= _TWELVE:
                        about = {
                            "texts": kind,
                            "by": measure,
                            "from": low,
                            "part": "locked" if held_out else "develop",
                            "of": len(rows),
                        }
                        yield about | _counted(tools, told, _by_lot(told, rows))
        yield from _twelve(told, kind)


def analogous(tools: Instruments) -> Iterator[dict[str, Json]]:
    """For each set and part how many analogous pairs, and how many of others drawn at random, get an edge in
    each band, verified or not.
    """
    for name in PAIRS:
        every = pairs(name)
        for part, some in (("develop", every.dev), ("locked", every.held_out)):
            told, right, wrong = _of_pairs(tools, every, some)
            for what, rows in (("analogous", right), ("others", wrong)):
                about = {
                    "set": name,
                    "part": part,
                    "pairs of": what,
                    "analogous": len(some.analogous),
                    "judged": some.judged,
                }
                yield about | _counted(tools, told, rows)


def told_texts(tools: Instruments, kind: str) -> ToldTexts:
    """Every text of the sets of analogous pairs, or each of its sentences, that has a skeleton."""
    owner: dict[str, tuple[str, bool]] = {}
    for name in ITEMS:
        for item in items(name):
            for text in (item.source, item.analogue):
                owner.setdefault(text, (f"{name} {item.group}", item.held_out))
    if kind == SENTENCES:
        owner = {
            sentence.text: owner[text.text]
            for text in analyse_texts(list(owner))
            for sentence in text.sentences
        }
    return _told(tools, owner)


def _told(tools: Instruments, owner: Mapping[str, tuple[str, bool]]) -> ToldTexts:
    made = make_skeletons(list(owner), tools.masked_maker, cache=False)
    texts = [text for text in owner if text in made]
    raw, skeleton = embed_texts_and_skeletons(tools.embedder, texts, [made[text] for text in texts])
    groups = {group: number for number, group in enumerate(dict.fromkeys(owner[text][0] for text in texts))}
    return ToldTexts(
        tuple(texts),
        raw,
        skeleton,
        np.array([count_words(made[text]) for text in texts], np.int64),
        np.array([len(_WORD.findall(text)) for text in texts], np.int64),
        np.array([groups[owner[text][0]] for text in texts], np.int64),
        np.array([owner[text][1] for text in texts], bool),
    )


def _of_pairs(
    tools: Instruments, every: AnalogyPairs, some: AnalogyPairs
) -> tuple[ToldTexts, tuple[_Rows, _Rows], tuple[_Rows, _Rows]]:
    text_of = {document.id: document.text for document in every.documents}
    told = _told(tools, {text_of[id]: (id, False) for id in text_of})
    row_of = {text: row for row, text in enumerate(told.texts)}
    ids = [document.id for document in every.documents]
    chance = np.random.default_rng(0)
    drawn = dict.fromkeys(
        pair(ids[a], ids[b]) for a, b in chance.integers(0, len(ids), (3 * _AT_LOT, 2)).tolist() if a != b
    )
    others = [both for both in drawn if some.judges(*both) and both not in some.analogous][:_AT_LOT]

    def rows(pairs: Sequence[tuple[str, ...]]) -> tuple[_Rows, _Rows]:
        known = [both for both in pairs if all(text_of[id] in row_of for id in both)]
        first, second = (np.array([row_of[text_of[both[end]]] for both in known], np.int64) for end in (0, 1))
        return first, second

    return told, rows(sorted(some.analogous)), rows(others)


def _by_lot(told: ToldTexts, rows: _Rows) -> tuple[_Rows, _Rows]:
    chance = np.random.default_rng(0)
    first, second = chance.choice(rows, _AT_LOT), chance.choice(rows, _AT_LOT)
    apart = told.group[first] != told.group[second]
    return first[apart], second[apart]


def _counted(tools: Instruments, told: ToldTexts, rows: tuple[_Rows, _Rows]) -> dict[str, Json]:
    """How many pairs there are, how many pass by band, and how many of the first that pass a verifier lets
    stand, by band.
    """
    found = told.bands(*rows)
    passed = [place for place, name in enumerate(found) if name]
    looked = sorted(passed, key=lambda place: (place * 7919) % 100_003)[:_ALIGNED]
    tools.aligner.prepare(
        sorted({told.texts[row] for place in looked for row in (rows[0][place], rows[1][place])})
    )
    stand = [
        place
        for place in looked
        if not tools.aligner.align(told.texts[rows[0][place]], told.texts[rows[1][place]]).veto
    ]
    count = {name: sum(each == name for each in found) for name in BANDS}
    asked = {name: sum(found[place] == name for place in looked) for name in BANDS}
    stood = {name: sum(found[place] == name for place in stand) for name in BANDS}
    return {"pairs": len(found), "edges": count, "looked": asked, "stand": stood}


def _twelve(told: ToldTexts, kind: str) -> Iterator[dict[str, Json]]:
    """Twelve texts of different groups at random, many times: how many of their 66 pairs get an edge."""
    rows = np.flatnonzero(~told.held_out)
    chance, counts, high = np.random.default_rng(0), [], 0
    first, second = np.triu_indices(_TWELVE, 1)
    for _ in range(TIMES):
        some = chance.permutation(rows)
        _, places = np.unique(told.group[some[:200]], return_index=True)
        twelve = some[np.sort(places)[:_TWELVE]]
        bands = told.bands(twelve[first], twelve[second])
        counts.append(sum(map(bool, bands)))
        high += bands.count("high")
    low, middle, top, most = (float(np.quantile(counts, share)) for share in (0.025, 0.5, 0.975, 1.0))
    quantiles = {"2.5 %": low, "median": middle, "97.5 %": top, "most": most}
    yield {
        "texts": kind,
        "twelve": TIMES,
        "edges of 66": quantiles,
        "mean": float(np.mean(counts)),
        "high": high / max(1, sum(counts)),
    }
