"""What a question has met on its way along paths: sentences, how well their passages stand, and the answers
read so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.loop.modes.paths.mentions import PlacedSentence, title_of
from kgot_lab.loop.modes.paths.routes import FactParts, Route
from kgot_lab.retrieval.entity_linking import Titles, compared_name
from kgot_lab.text.words import plain_answer
from kgot_lab.types import Document

_STARTS = 12  # names that paths begin at


@dataclass(frozen=True)
class PathAnswer:
    """An answer, the routes it was read from, how likely the model held it (None: not told), and why it is
    refused, if it is.
    """

    text: str
    routes: tuple[Route, ...]
    likelihood: float | None
    problem: str = ""
    computed: bool = False  # worked out from values that were read
    trust: float = 1.0  # what its likelihood counts beside that of others

    @property
    def likely(self) -> float:
        """How likely the model held it, times what that counts; 0 where it is not told."""
        return self.trust * (self.likelihood or 0.0)

    @property
    def certainty(self) -> str:
        """How sure the answer is, for people."""
        if self.computed:
            return "was worked out from what was read"
        told = "was read" if self.likelihood is None else f"is {self.likelihood:.0%} likely"
        if self.likelihood is not None and self.trust < 1:
            told += f" (of which {self.trust:.0%} count, for it was not read from the first path)"
        return f"{told}, but {self.problem}" if self.problem else f"{told} and stands in the evidence"


@dataclass
class PathWalk:
    """What this question has met on its way, beside the graph."""

    embedder: Embedder | None
    sentences: dict[str, PlacedSentence] = field(default_factory=dict)  # by their places
    standing: dict[str, float] = field(default_factory=dict)  # of titles, 0 to 1
    found: dict[str, float] = field(default_factory=dict)  # the standing of passages, by their ids
    passages: tuple[Document, ...] = ()  # that the question itself found, the best first
    answered: list[PathAnswer] = field(default_factory=list)
    read: set[str] = field(default_factory=set)  # texts of routes
    # of the graph that the run began with, by the names they are at
    facts: dict[str, tuple[FactParts, ...]] = field(default_factory=dict)
    said: frozenset[str] | None = None  # the sentences of that graph, once they are asked for
    split: bool = False  # whether the question was split into hops

    def stands(self, documents: Sequence[Document]) -> None:
        """Note how well passages were found: 1 / rank, half of it where it was not the question that was
        looked up.
        """
        self.passages = self.passages or tuple(documents)
        whole = 1.0 if not self.standing else 0.5
        for rank, document in enumerate(documents, start=1):
            title = title_of(document)
            self.standing[title] = max(self.standing.get(title, 0.0), whole / rank)
            self.found[document.id] = max(self.found.get(document.id, 0.0), whole / rank)

    def stand_of(self, sentence: PlacedSentence) -> float:
        """How well the passage of a sentence was found: as its title, where the passage itself was not."""
        return self.found.get(sentence.source, self.standing.get(sentence.title, 0.0))

    def is_sure(self, least: float) -> bool:
        """Whether an answer was worked out, or is at least so likely; of a model that tells no likelihood,
        whether two paths agree.
        """
        fit = [each for each in self.answered if not each.problem]
        untold = Counter(plain_answer(each.text) for each in fit if each.likelihood is None)
        return max(untold.values(), default=0) > 1 or any(
            each.computed or each.likely >= least for each in fit
        )

    @property
    def best(self) -> PathAnswer | None:
        """The answer that was worked out, or else the likeliest, of those that are not refused where there is
        one.
        """
        told = (each for each in self.answered if each.text)
        return max(told, key=lambda each: (not each.problem, each.computed, each.likely), default=None)

    @property
    def starts(self) -> list[str]:
        """The titles that stand best, where paths begin."""
        return sorted(self.standing, key=lambda title: -self.standing[title])[:_STARTS]

    def named_in(self, text: str) -> list[str]:
        """The titles that a text names, in its order."""
        known = self._titles()
        return list(dict.fromkeys(known[name][0] for name in known.mentioned(text, cased=False)))

    def title_for(self, name: str) -> str | None:
        """The title in the graph that a name stands for."""
        if name in self.standing:
            return name
        known = self._titles()
        found = known[compared_name(name)] or [
            id for told in known.mentioned(name, cased=False) for id in known[told]
        ]
        return max(found, key=lambda title: self.standing[title], default=None)

    def _titles(self) -> Titles:
        return Titles(Document(title, "", spaced(title)) for title in self.standing)


def spaced(name: str) -> str:
    """A name of a graph with spaces for the underscores that files such as Turtle put in their place."""
    return name.replace("_", " ")


def weakest(read: Iterable[PathAnswer]) -> float | None:
    """How likely the least likely of some answers is: what follows from them is no surer. None where one is
    not told.
    """
    told = [each.likelihood for each in read]
    return None if None in told else min((each for each in told if each is not None), default=None)
