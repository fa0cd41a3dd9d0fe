"""The material for judging an answer: the sentences a run saw, showed to its model and read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import supports_of
from kgot_lab.loop.events import EMPTY, Answered, Asked, Event, Parsed, Started, ToolReturned, Wrote
from kgot_lab.loop.modes.paths.mentions import passage_title
from kgot_lab.loop.modes.paths.question_form import parse_hops
from kgot_lab.memory.extraction import SourcedSentence
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.words import text_sentences
from kgot_lab.types import Edge

_READING_ROLES = ("path", "wide")  # roles of prompts that an answer is read from
_QUESTION_PREFIX = "\n\nQuestion: "


@dataclass(frozen=True)
class PathReading:
    """One call that read an answer from sentences.

    It holds the question, the sentences shown, the answer, and why it was rejected.
    """

    number: int  # of the event
    question: str
    shown: tuple[SourcedSentence, ...]
    answer: str
    problem: str


@dataclass(frozen=True)
class RunMaterial:
    """The events of a run with an answer. Raises BadInput for any other run."""

    events: Sequence[Event]

    def __post_init__(self) -> None:
        if not any(isinstance(event, Answered) for event in self.events):
            raise BadInput(
                "a certificate is of a run with an answer: give a finished run, as load_run returns it"
            )

    @cached_property
    def question(self) -> str:
        """The question of the run."""
        return next((event.question for event in self.events if isinstance(event, Started)), "")

    @cached_property
    def answered(self) -> Answered:
        """The end of the run."""
        return next(event for event in reversed(self.events) if isinstance(event, Answered))

    @cached_property
    def all_sentences(self) -> tuple[SourcedSentence, ...]:
        """All sentences of the initial graph and of tool results, without repeats."""
        returned = (sentence for event in self._tool_results for sentence in _sentences_in(event))
        return tuple(dict.fromkeys([*self._start_sentences, *returned]))

    def titles(self, end: int | None = None) -> tuple[str, ...]:
        """Return the titles of the sentences, of all events or of those before an event."""
        results = (e for e in self.events[:end] if isinstance(e, ToolReturned) and not e.failed)
        returned = (sentence for result in results for sentence in _sentences_in(result))
        return tuple(dict.fromkeys(sentence.title for sentence in (*self._start_sentences, *returned)))

    @cached_property
    def path_sentences(self) -> tuple[SourcedSentence, ...]:
        """The sentences that the answer was read from, or those of its passages if it names no sentence."""
        supports = dict.fromkeys(support for sentence in self.answered.supports for support in sentence)
        by_place = {(sentence.source, sentence.text): sentence for sentence in self.all_sentences}
        titles = {sentence.source: sentence.title for sentence in self.all_sentences}
        sentences = [
            by_place.get((s.source, s.sentence))
            or SourcedSentence(s.sentence, titles.get(s.source, ""), s.source, 0)
            for s in supports
        ]
        return tuple(sentences) or tuple(s for s in self.all_sentences if s.source in self.answered.passages)

    @cached_property
    def path_facts(self) -> tuple[Edge, ...]:
        """The typed facts in the evidence of the answer, and those written from its sentences."""
        texts, evidence = {sentence.text for sentence in self.path_sentences}, set(self.answered.evidence)
        typed = (edge for edge in self._edges if edge.type not in (SAYS_SENTENCE, MENTIONS_NAME))
        return tuple(
            edge
            for edge in {edge.identity: edge for edge in typed}.values()
            if fact_of(edge) in evidence or any(s.sentence in texts for s in supports_of(edge.properties))
        )

    @cached_property
    def readings(self) -> tuple[PathReading, ...]:
        """The answers read from sentences along paths, in order."""
        by_line: dict[str, SourcedSentence] = {}
        for sentence in self.all_sentences:
            by_line.setdefault(str(sentence), sentence)
        readings: list[PathReading] = []
        call: Asked | None = None
        for number, event in enumerate(self.events):
            if isinstance(event, Asked) and not event.is_failed:
                call = event if event.role.partition(",")[0] in _READING_ROLES else None
            if isinstance(event, Parsed) and call is not None:
                text, _, question = call.prompt.messages[-1].text.rpartition(_QUESTION_PREFIX)
                shown = tuple(by_line[line] for line in text.splitlines() if line in by_line)
                readings.append(PathReading(number, question, shown, event.text, event.problem))
                call = None
        return tuple(readings)

    def first_reply(self, role: str) -> tuple[int, str]:
        """Return the index of the first event in which a model was called for a role, and its reply.

        Returns -1 and "" if there is none.
        """
        calls = ((i, e) for i, e in enumerate(self.events) if isinstance(e, Asked))
        usable = ((i, call) for i, call in calls if not call.is_failed and not call.cut)
        return next(((i, call.reply) for i, call in usable if call.role.partition(",")[0] == role), (-1, ""))

    @cached_property
    def hops(self) -> list[str]:
        """The hops of the question, or an empty list if it was not decomposed or is not a chain."""
        return parse_hops(self.first_reply("hops")[1])

    @cached_property
    def _tool_results(self) -> list[ToolReturned]:
        return [event for event in self.events if isinstance(event, ToolReturned) and not event.failed]

    @cached_property
    def _edges(self) -> list[Edge]:
        writes = (event for event in self.events if isinstance(event, Wrote))
        written = (edge for event in writes for edge in event.diff.written_edges)
        return [*self._start.edges, *written]

    @cached_property
    def _start(self) -> PropertyGraph:
        return next((event.start for event in self.events if isinstance(event, Started)), EMPTY)

    @cached_property
    def _start_sentences(self) -> tuple[SourcedSentence, ...]:
        """The sentences of the graph that the run began with."""
        counts: dict[str, int] = defaultdict(int)
        sentences: dict[SourcedSentence, None] = {}
        for edge in self._start.edges:
            title = edge.source if edge.type == SAYS_SENTENCE else ""
            for support in supports_of(edge.properties):
                if edge.type != MENTIONS_NAME and support.sentence:
                    place = counts[support.source]
                    sentences[SourcedSentence(support.sentence, title, support.source, place)] = None
                    counts[support.source] += 1
        return tuple(sentences)


def _sentences_in(event: ToolReturned) -> Iterable[SourcedSentence]:
    """Yield the sentences that a tool returned.

    A text without a document counts as one by itself, named by its call.
    """
    if not event.sources:
        title = " ".join(map(str, event.call.arguments.values()))
        for index, text in enumerate(text_sentences(event.text)):
            yield SourcedSentence(text, title, str(event.call), index)
    for document in event.sources:
        for index, text in enumerate(text_sentences(document.text)):
            yield SourcedSentence(text, passage_title(document), document.id, index)
