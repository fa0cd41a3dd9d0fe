"""What each fact of a run rests on: since which event it is in the graph, the sentences that say it, and the
passages they stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kgot_lab.graph.provenance import Support
from kgot_lab.loop.events import Answered, Event, Started, ToolReturned, Wrote
from kgot_lab.loop.evidence import FoundSupports
from kgot_lab.loop.modes.paths.mentions import is_place
from kgot_lab.loop.state import state_after
from kgot_lab.sandbox.python.helpers import SAYS_SENTENCE
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.types import Document, Edge, Json


def facts_of_run(events: Sequence[Event], number: Callable[[str], int]) -> dict[str, Json]:
    """The facts of a run as JSON, those that the answer rests on by their place among them, and the passages
    that say any.

    `number` gives each text its number. A fact that the graph began with is there since event 0; one that an
    answer names and no edge says has no edge.
    """
    since = _since(events)
    found = FoundSupports(state_after(events))
    passages = _Passages(events, number)
    facts = {
        fact_of(edge): _fact(edge, at, passages.sentences(found.of(edge))) for edge, at in since.values()
    }
    answer = next((event for event in events if isinstance(event, Answered)), None)
    evidence = list(map(str, answer.evidence)) if answer else []
    for place, text in enumerate(evidence):
        said = answer.supports[place] if answer and place < len(answer.supports) else ()
        fact = facts.setdefault(text, {"text": text, "edge": None, "since": -1, "said": []})
        fact["said"] = fact["said"] or passages.sentences(said)
    order = {text: place for place, text in enumerate(facts)}
    return {
        "facts": list(facts.values()),
        "evidence": [order[text] for text in evidence],
        "passages": passages.used,
    }


def _since(events: Sequence[Event]) -> dict[tuple[str, str, str, str], tuple[Edge, int]]:
    """Each edge that was ever in the graph, as it was last, and the event since which it is there."""
    begun = next((event.start for event in events if isinstance(event, Started)), None)
    found = {edge.identity: (edge, 0) for edge in (begun.edges if begun else ())}
    for at, event in enumerate(events):
        if isinstance(event, Wrote):
            for edge in (*event.diff.added_edges, *(after for _, after in event.diff.changed_edges)):
                found[edge.identity] = edge, found[edge.identity][1] if edge.identity in found else at
    return found


def _fact(edge: Edge, since: int, said: list[Json]) -> dict[str, Json]:
    of = {"sentence_of": edge.source} if edge.type == SAYS_SENTENCE and is_place(edge.target) else {}
    return {
        "text": fact_of(edge),
        "edge": [edge.source, edge.type, edge.target],
        "since": since,
        "said": said,
        **of,
    }


class _Passages:
    """The documents that a run read, those that say something kept once, each with the event that brought it
    first.
    """

    def __init__(self, events: Sequence[Event], number: Callable[[str], int]) -> None:
        self.used: list[dict[str, Json]] = []
        self._number, self._places = number, dict[str, int]()
        self._read: dict[str, tuple[Document, int]] = {}
        for at, event in enumerate(events):
            for document in event.sources if isinstance(event, ToolReturned) else ():
                self._read.setdefault(document.id, (document, at))

    def sentences(self, supports: Iterable[Support]) -> list[Json]:
        """The sentences that say a fact, each with the place of its passage; -1 where it stands in none."""
        return [
            {
                "sentence": self._number(each.sentence),
                "passage": self._place(each.source),
                "source": each.source,
            }
            for each in supports
        ]

    def _place(self, source: str) -> int:
        if source not in self._read:
            return -1
        if source not in self._places:
            self._places[source] = len(self.used)
            document, at = self._read[source]
            self.used.append(
                {"title": document.title or source, "text": self._number(document.text), "event": at}
            )
        return self._places[source]
