"""Names that mean one thing: merges as a layer on reading, under which every fact keeps the names it was
learnt with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kgot_lab.types import Triple


class Aliases:
    """What each name goes by, from the merges {other: kept}; a name that was kept may itself have been merged
    into another.
    """

    def __init__(self, merges: Mapping[str, str]) -> None:
        self.merges = merges
        self._names: dict[str, list[str]] = defaultdict(list)
        for other in merges:
            self._names[self.canonical(other)].append(other)

    def canonical(self, name: str) -> str:
        """The name that a name goes by: itself, where it was merged into no other."""
        while name in self.merges:
            name = self.merges[name]
        return name

    def names(self, name: str) -> list[str]:
        """All names of what a name means, the one it goes by first."""
        kept = self.canonical(name)
        return [kept, *self._names.get(kept, ())]

    def read(self, fact: Triple) -> Triple:
        """A fact by the names it goes by."""
        if not self.merges:
            return fact
        return Triple(self.canonical(fact.subject), fact.relation, self.canonical(fact.object))

    def spellings(self, facts: Iterable[Triple]) -> list[Triple]:
        """Every fact under all names it may have been learnt with."""
        return [
            Triple(subject, fact.relation, object)
            for fact in facts
            for subject in self.names(fact.subject)
            for object in self.names(fact.object)
        ]
