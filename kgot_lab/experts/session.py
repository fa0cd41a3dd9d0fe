"""A conversation with an expert from Python: questions in sequence, each answer with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kgot_lab.arguments import check_arguments
from kgot_lab.experts.chat.chat_events import AnswerRecord, ChatDone, ChatEvent, SourceNode, Thought
from kgot_lab.experts.chat.citations import CITATION_PATTERN, FALSE_MARK, CitableNode, CitableNodes
from kgot_lab.experts.chat.turn import ExpertTurn
from kgot_lab.experts.expert import Expert
from kgot_lab.experts.graph_folder import KnownGraphs
from kgot_lab.experts.service import LOCAL_OWNER, ExpertService
from kgot_lab.text.cleaning import format_count


class AnswerPart(NamedTuple):
    """A part of an answer: text, or a citation with the node it names. A citation without a node is false."""

    text: str
    is_citation: bool = False
    node: CitableNode | None = None


@dataclass(frozen=True)
class TalkAnswer:
    """An answer of an expert: its text, how it came about, and its valid and false citations.

    `thought` is None if nothing could be searched. `trouble` says why the answer is incomplete, and is "" if
    it is complete.
    """

    question: str
    text: str
    message: str  # the id under which it is stored
    conversation: str
    known: KnownGraphs = field(repr=False, compare=False)
    thought: Thought | None = field(default=None, repr=False, hash=False)
    sources: tuple[SourceNode, ...] = field(default=(), repr=False)
    cited: tuple[CitableNode, ...] = ()
    false: tuple[str, ...] = ()
    trouble: str = ""
    named: tuple[CitableNode, ...] = ()  # nodes that it names without citing them, matched here
    outcome: str = ""  # whether the sources say it, in words

    @property
    def parts(self) -> tuple[AnswerPart, ...]:
        """The answer as text and citations, in order."""
        return tuple(split_answer(self.text, self.cited))

    def __repr__(self) -> str:
        parts = [*filter(None, [self.text]), *(f"({note})" for note in (self.trouble, self.outcome) if note)]
        false = f", {format_count(len(self.false), 'false citation')}" if self.false else ""
        return f"{' '.join(parts)}\n<{format_count(len(self.cited), 'node')} cited{false}>"


def split_answer(text: str, cited: tuple[CitableNode, ...]) -> Iterator[AnswerPart]:
    """Split the text of an answer into plain text and citations.

    `cited` are the nodes that its valid citations name.
    """
    nodes, position = CitableNodes(cited), 0
    for match in CITATION_PATTERN.finditer(text):
        citation = match[1].strip()
        parts = [citation]
        if not nodes.resolve(citation):
            parts = [part for each in citation.split(";") if (part := each.strip())]
        citations = [AnswerPart(part.removesuffix(FALSE_MARK), True, nodes.resolve(part)) for part in parts]
        checked = (one.node or part.endswith(FALSE_MARK) for one, part in zip(citations, parts, strict=True))
        if not citations or not all(checked):
            continue  # not checked, so it stays text
        if position < match.start():
            yield AnswerPart(text[position : match.start()])
        yield from citations
        position = match.end()
    if position < len(text):
        yield AnswerPart(text[position:])


@check_arguments
class ExpertTalk:
    """A conversation with one expert. `turns` are the answers so far."""

    def __init__(self, service: ExpertService, expert_id: str, *, owner: str = LOCAL_OWNER) -> None:
        self.service, self.owner = service, owner
        self.expert: Expert = service.expert(expert_id)
        self.conversation: str | None = None
        self.turns: tuple[TalkAnswer, ...] = ()

    @property
    def known(self) -> KnownGraphs:
        """The graphs of the expert as they are now. Raises UnknownName and BadInput."""
        return self.service.graphs.expert_graphs(self.expert.config)

    def ask(self, question: str) -> TalkAnswer:
        """Ask a question in the conversation and wait for the whole answer.

        Raises BadInput if the question is invalid, and NotFound.
        """
        for _ in self.events(question):
            pass
        return self.turns[-1]

    def events(self, question: str) -> Iterator[ChatEvent]:
        """Ask a question and yield events as they happen.

        At the end the answer is the last of `turns`, even if the generator is closed before. Raises BadInput
        and NotFound.
        """
        turn = self.service.ask(self.expert.id, self.owner, question, conversation_id=self.conversation)
        services = replace(turn.services, tell_failure=lambda error, *_: str(error))
        turn = replace(turn, services=services)  # a caller from Python owns everything
        self.conversation = turn.conversation
        record = AnswerRecord()
        try:
            with closing(turn.events()) as stream:
                for event in stream:
                    record.record(event)
                    yield event
        finally:
            self.turns += (_talk_answer(turn, record),)

    def __repr__(self) -> str:
        graphs = ", ".join(self.expert.graphs)
        count = format_count(len(self.turns), "answer")
        return f"<Talk with {self.expert.persona.name} on {graphs}: {count}>"


def _talk_answer(turn: ExpertTurn, record: AnswerRecord) -> TalkAnswer:
    """Return the answer so far. An interrupted answer is what was stored of it."""
    done = record.done or _stored_end(turn)
    return TalkAnswer(
        question=turn.question,
        text=record.text,
        message=done.message_id,
        conversation=turn.conversation,
        known=turn.known,
        thought=record.thought,
        sources=record.sources,
        cited=done.cited,
        false=done.false,
        trouble=record.trouble if record.done else "it was broken off",
        named=done.named,
        outcome=done.outcome,
    )


def _stored_end(turn: ExpertTurn) -> ChatDone:
    last = turn.services.tables.messages(turn.conversation)[-1]
    if last.role != "assistant":
        return ChatDone("")
    metadata: Mapping[str, Any] = last.metadata
    cited = tuple(CitableNode(e["graph"], e["id"], e["name"], "") for e in metadata.get("citations", ()))
    return ChatDone(last.id, cited, tuple(metadata.get("false_citations", ())))
