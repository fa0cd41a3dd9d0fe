"""A turn of a chat with an expert, in eight stages.

Stages: intake, recall, playbooks, search and context, streamed answer, checked citations, storage. The
question is stored before anything else is sent, the answer before the end event. Closing the events stops the
model, and what it has said is stored as stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import LabError, LLMError
from kgot_lab.experts.chat.chat_events import (
    ChatDone,
    ChatEvent,
    ChatFailed,
    ConversationStarted,
    PromptContents,
    SourceNode,
    SourcesEvent,
    Thought,
    ThoughtEvent,
    TokenEvent,
    build_thought,
)
from kgot_lab.experts.chat.citations import CitableNodes, CitationCheck, SentenceStream, mentioned_nodes
from kgot_lab.experts.chat.consulting import Consultants, format_answers, remote_citables, uncovered_words
from kgot_lab.experts.chat.prompting import (
    USUAL_OPTIONS,
    AnswerOptions,
    OutputLimit,
    Playbook,
    PromptQuestion,
    empty_context,
    expert_prompt,
    matching_sections,
    prompt_context,
    recall_messages,
)
from kgot_lab.experts.error_messages import failure_message
from kgot_lab.experts.expert import Expert
from kgot_lab.experts.graph_folder import KnownGraphs
from kgot_lab.experts.repository import ChatMessage, ExpertTables
from kgot_lab.experts.trials.verdict import TrialChoice
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.llm.budget import estimate_tokens
from kgot_lab.llm.streaming import stream_reply
from kgot_lab.memory.user_memory import Memory
from kgot_lab.text.cleaning import plain_text
from kgot_lab.text.words import content_words
from kgot_lab.types import LLM, Json, Prompt, Reply, Usage

_MIN_CONTENT_WORDS = 4  # content words with which a question is searched for by itself
_MAX_EARLIER_MESSAGES = 2_000  # messages of earlier conversations that are searched


@dataclass(frozen=True)
class TurnServices:
    """What all turns of a service share: storage, and what helps to answer."""

    tables: ExpertTables
    playbooks: Mapping[str, Playbook] = field(hash=False)
    embedder: Embedder | None = None
    consultants: Consultants | None = None
    memory: Memory | None = None  # what the one who asks said, which prompts recall
    clock: Callable[[], float] = time.monotonic
    tell_failure: Callable[..., str] = failure_message  # of an error, without the words that follow it


@dataclass(frozen=True)
class ExpertTurn:
    """A stored question to an expert with what is needed to answer it. `events` answers it once."""

    services: TurnServices
    expert: Expert
    known: KnownGraphs
    llm: LLM
    owner: str
    conversation: str
    question: str
    said: tuple[tuple[str, str], ...]
    options: AnswerOptions = USUAL_OPTIONS
    choice: TrialChoice | None = None
    asked_as: str = ""  # the id of the message with the question

    def events(self) -> Generator[ChatEvent, None, None]:
        """Yield the events of the turn in order.

        Closing the generator stops the model and stores what was said so far. An empty piece of text means
        that the model is at work.
        """
        yield ConversationStarted(self.conversation)
        started = self.services.clock()
        try:
            prepared = self._prepare()
        except LabError as error:
            yield from self._fail(error)
            return
        thought = prepared.thought
        yield PromptContents(thought.memories > 0, bool(thought.playbooks), len(prepared.sources))
        yield SourcesEvent(prepared.sources)
        yield ThoughtEvent(thought)
        searched = round(1000 * (self.services.clock() - started))
        about = {**prepared.about, "searched_ms": searched}
        answer = _Answer(CitationCheck(prepared.citables), about, limit=OutputLimit(self.options))
        try:
            if prepared.prompt is None:
                yield from self._decline(thought, answer)
            else:
                yield from self._stream_answer(prepared.prompt, answer, started)
        except Exception:
            if not answer.kept:
                self._store(answer, failed=True)
            raise
        finally:  # also if the events were closed in the middle, which is no error
            if not answer.kept:
                self._store(answer, stopped=True)

    def _prepare(self) -> _PreparedTurn:
        """Run stages 2 to 4: recall, playbooks, graph search, and the prompt built from them."""
        config, services = self.choice.config if self.choice else self.expert.config, self.services
        talk = self.expert.id, self.owner, self.conversation
        earlier = services.tables.earlier_messages(*talk, _MAX_EARLIER_MESSAGES)
        texts = [text for _, text in recall_messages(self.question, earlier)]
        if services.memory is not None:
            texts += [each.line.removeprefix("- ") for each in services.memory.recall(self.question)]
        query = search_query(self.question, self.said)
        settings = config.search_config()
        result = intent_search(self.known.asked, query, config=settings, embedder=services.embedder)
        intent = result.intents.best.name if result.intents.best else ""
        sections = matching_sections(self.question, config.playbook_skills, services.playbooks, intent=intent)
        uncovered = uncovered_words(query, result)
        # only words of this question, not of the one before it
        own_words = tuple(word for word in uncovered.words if word in self.question)
        unsaid = (own_words or uncovered.words) if uncovered.is_majority else ()
        consultants = config.delegates_to and (unsaid or not result.nodes) and services.consultants
        remote = consultants.ask(self.question, config.delegates_to) if consultants else ()
        is_answered = any(each.answer for each in remote)
        off_topic = uncovered.is_all and config.off_topic == "decline" and not is_answered
        context = empty_context(len(result.nodes)) if off_topic else prompt_context(self.known, result)
        delegated = [each.to_json() for each in remote]
        thought = build_thought(self.known, result, context, sections, len(texts), delegated, unsaid)
        scores = {self.known.split_id(node.id): round(node.score, 4) for node in result.nodes}
        remote_nodes = remote_citables(remote)
        asked = self.question, self.said, tuple(texts), sections, intent, self.options
        question = PromptQuestion(*asked, format_answers(remote), remote_nodes, unsaid)
        sources = tuple(
            SourceNode(node.graph, node.id, node.name, node.type, scores.get((node.graph, node.id), 0.0))
            for node in context.nodes
        )
        metadata: dict[str, Json] = {
            "expert_id": self.expert.id,
            "kg_db_id": config.graphs[0],
            "intent": intent or None,
            "kg_nodes_used": [node.id for node in sources],
            "retrieval_scores": {node.id: node.score for node in sources},
            "trace": thought.model_dump(mode="json"),
            **(self.choice.about if self.choice else {}),
        }
        prompt = None if off_topic else expert_prompt(config, context, question)
        citables = CitableNodes([*context.citable, *remote_nodes])
        return _PreparedTurn(prompt, thought, citables, sources, metadata)

    def _decline(self, thought: Thought, answer: _Answer) -> Iterator[ChatEvent]:
        """Decline a question that is off the expert's topic, by rule and without the model."""
        config = self.choice.config if self.choice else self.expert.config
        statement = f"My {'graph says' if len(config.graphs) == 1 else 'graphs say'} nothing of {', '.join(thought.unsaid)}."
        parts = (statement, "I do not know the answer.", config.persona.greeting)
        answer.text = answer.limit.feed(" ".join(filter(None, parts)), is_last=True)
        answer.about |= {"declined": True, "cut": answer.limit.reason == "length"}
        yield TokenEvent(answer.text)
        message = self._store(answer)
        is_cut, outcome = bool(answer.about["cut"]), str(message.metadata["outcome"])
        yield ChatDone(message.id, text=answer.text, cut=is_cut, outcome=outcome)

    def _stream_answer(self, prompt: Prompt, answer: _Answer, started: float) -> Iterator[ChatEvent]:
        """Run stages 5 to 8: stream the reply of the model, check its citations and store the answer."""
        answer.form = SentenceStream() if prompt.schema is not None else None
        pieces = stream_reply(self.llm, prompt)
        try:
            for piece in pieces:
                if isinstance(piece, Reply):
                    answer.usage, answer.model = piece.usage, piece.model or self.llm.name
                    answer.about |= {"cut": True} if piece.cut else {}
                    continue
                piece = plain_text(piece)
                piece = answer.limit.feed(answer.form.feed(piece) if answer.form else piece)
                text = answer.check.feed(piece)
                if text and not answer.text:
                    answer.about["first_token_ms"] = round(1000 * (self.services.clock() - started))
                answer.text += text
                yield TokenEvent(text)
                if answer.limit.reason:
                    read, written = estimate_tokens(prompt), len(answer.text.split())
                    answer.usage, answer.model = Usage(read, written), self.llm.name
                    break
            rest = answer.limit.feed(answer.form.finish() if answer.form else "", is_last=True)
            if rest := answer.check.feed(rest) + answer.check.finish():
                answer.text += rest
                yield TokenEvent(rest)
        except LLMError as error:
            yield from self._fail(error, answer)
            return
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
        cited = tuple(answer.check.cited)
        mentioned = mentioned_nodes(answer.text, answer.check.citables.nodes, answer.check.cited)
        answer.about["named"] = [{"graph": n.graph, "id": n.id, "name": n.name} for n in mentioned]
        answer.about |= {"cut": True} if answer.limit.reason == "length" else {}
        message = self._store(answer)
        false, is_cut = tuple(answer.check.false), "cut" in answer.about
        outcome = str(message.metadata["outcome"])
        yield ChatDone(message.id, cited, false, answer.usage, answer.text, mentioned, is_cut, outcome)

    def _store(self, answer: _Answer, *, stopped: bool = False, failed: bool = False) -> ChatMessage:
        answer.kept = True
        cited: list[Json] = [
            {"graph": node.graph, "id": node.id, "name": node.name, "times": times}
            for node, times in answer.check.cited.items()
        ]
        citations: dict[str, Json] = {"citations": cited, "false_citations": answer.check.false}
        tokens: list[Json] = [answer.usage.prompt_tokens, answer.usage.completion_tokens]
        metadata: dict[str, Json] = {**answer.about, **citations, "model": answer.model, "tokens": tokens}
        metadata |= {"answers": self.asked_as}
        metadata |= {"stopped": True} if stopped else {}
        metadata |= {"failed": True} if failed else {}
        unsaid = answer.about.get("trace", {}).get("unsaid", ())
        metadata["outcome"] = "" if stopped or failed else answer.check.judge(answer.text, unsaid).remark
        return self.services.tables.add_message(self.conversation, "assistant", answer.text, metadata)

    def _fail(self, error: LabError, answer: _Answer | None = None) -> Iterator[ChatEvent]:
        answer = answer or _Answer(CitationCheck(CitableNodes(())), {"expert_id": self.expert.id})
        message = self._store(answer, failed=True)
        yield ChatFailed(self.services.tell_failure(error, self.question))
        yield ChatDone(message.id, text=answer.text)


class _PreparedTurn(NamedTuple):
    """What is needed for an answer. Without a prompt no model is called."""

    prompt: Prompt | None
    thought: Thought
    citables: CitableNodes
    sources: tuple[SourceNode, ...]
    about: dict[str, Json]


@dataclass
class _Answer:
    """An answer while it is being written."""

    check: CitationCheck
    about: dict[str, Json]
    text: str = ""
    model: str = ""
    usage: Usage = Usage()
    kept: bool = False
    limit: OutputLimit = field(default_factory=OutputLimit)
    form: SentenceStream | None = None  # parser of the model's reply, if it has a schema


def search_query(question: str, history: Sequence[tuple[str, str]]) -> str:
    """Return the search query for a question.

    A question with few content words of its own, such as "And why?", is joined with the one before it.
    """
    previous = next((text for role, text in reversed(history) if role == "user"), "")
    is_short = len(set(content_words(question))) < _MIN_CONTENT_WORDS
    return f"{question} {previous}" if previous and is_short else question


def chat_history(messages: Sequence[ChatMessage]) -> tuple[tuple[str, str], ...]:
    """Return the history of a conversation for a model, as (role, content), without unanswered questions.

    Each answer follows its own question, even if two questions were asked at once.
    """
    exchanges: list[tuple[str, str]] = []
    positions: dict[Json, int] = {}
    for message in messages:
        if message.role == "user":
            positions[message.id] = len(exchanges)
            exchanges.append((message.content, ""))
        elif message.content and exchanges:
            position = positions.get(message.metadata.get("answers"), len(exchanges) - 1)
            question, answer = exchanges[position]
            exchanges[position] = (question, answer or message.content)
    answered = ((("user", question), ("assistant", answer)) for question, answer in exchanges if answer)
    return tuple(chain.from_iterable(answered))
