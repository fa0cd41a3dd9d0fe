"""Pairs of systems whose parts correspond, such as the atom and the solar system: which word of one stands
for which of the other.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from benchmarks.structure.analogies import read_test_ids
from kgot_lab.errors import BadInput
from kgot_lab.io.files import bundled_path


@dataclass(frozen=True)
class SystemTerm:
    """A word of the target system, the word of the source system that it corresponds to, and others that
    people accepted for it.
    """

    target: str
    source: str
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class SystemPair:
    """A target system, the source system it is compared to, and their corresponding words; `kind` is science
    or metaphor.
    """

    id: str
    target: str
    source: str
    kind: str
    terms: tuple[SystemTerm, ...]


@dataclass(frozen=True, repr=False)
class SystemPairs:
    """Pairs of systems; those of `test_ids` are evaluated last."""

    name: str
    pairs: tuple[SystemPair, ...]
    test_ids: frozenset[str] = frozenset()

    def only(self, ids: Collection[str]) -> SystemPairs:
        """Some of the pairs."""
        return replace(self, pairs=tuple(pair for pair in self.pairs if pair.id in ids))

    @property
    def dev(self) -> SystemPairs:
        """The pairs one may look at and tune on."""
        return self.only({pair.id for pair in self.pairs} - self.test_ids)

    @property
    def held_out(self) -> SystemPairs:
        """The test pairs."""
        return self.only(self.test_ids)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.pairs)} pairs of systems, {sum(len(pair.terms) for pair in self.pairs)} terms>"


def system_pairs() -> SystemPairs:
    """The SCAN analogies: 65 pairs of systems with 451 terms."""
    rows: dict[str, list[dict[str, str]]] = {}
    with bundled_path("scan-analogies/SCAN_dataset.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(f"{row['target']} | {row['source']}", []).append(row)
    pairs = (
        SystemPair(id, of[0]["target"], of[0]["source"], of[0]["analogy_type"], tuple(map(_term, of)))
        for id, of in rows.items()
    )
    return SystemPairs("scan-analogies", tuple(pairs), read_test_ids("scan-analogies"))


def mapped(pair: SystemPair, proposed: Mapping[str, str]) -> float:
    """The share of the terms for which a mapping from target words to source words names the word or an
    accepted alternative.

    A term it says nothing of counts as wrong. Raises BadInput for a word that the target system does not
    have.
    """
    unknown = sorted(set(proposed) - {term.target for term in pair.terms})
    if unknown:
        raise BadInput(
            f"{pair.id!r} has no target word {unknown[0]!r}; a mapping goes from target words to source words"
        )
    right = [proposed.get(term.target) in {term.source, *term.alternatives} for term in pair.terms]
    return sum(right) / len(right)


def _term(row: Mapping[str, str]) -> SystemTerm:
    others = tuple(word.strip() for word in row["alternatives"].split(",") if word.strip())
    return SystemTerm(row["targ_word"], row["src_word"], others)
