"""The prompt of an expert: persona, graph context, plan, playbooks, memory and citation rules.

From KG-OS, sections 8 and 9. The prompt has at most 10 nodes and 15 edges. Limitations are never left
out, because a model cannot warn of what it is not shown. Text from graphs, other people's playbooks and
earlier conversations is fenced: it is material, never an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from kgot_lab.errors import BadInput, require_known
from kgot_lab.experts.chat.citations import NO_SOURCE, NOT_KNOWN, CitableNode, sentences_schema
from kgot_lab.experts.expert import ExpertConfig, describe_first_error
from kgot_lab.experts.graph_folder import KnownGraphs
from kgot_lab.io.files import read_regular_text
from kgot_lab.kgos.methods.compose_for import Composition
from kgot_lab.kgos.methods.goals import Limitation, limitations_by_row
from kgot_lab.kgos.methods.index import GraphIndex, graph_index
from kgot_lab.kgos.methods.intents import INTENTS
from kgot_lab.kgos.methods.search.results import SearchResult
from kgot_lab.kgos.schemas.dimensions import rated_dimensions
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.text.cleaning import FENCES, fence_text, printable_line, truncate_to_tokens
from kgot_lab.text.words import SEARCH_STOP_WORDS, casefold_words, content_words, stem
from kgot_lab.types import Document, Edge, Message, Prompt

# Playbooks: short guides in Markdown, whose sections go into the prompt of an expert with that skill if they
# match the question.
#
# A playbook is a file with a header between two lines of ---: `name`, `title`, `words` (words of questions
# that need it) and optionally `intents`. Its sections begin with ## and are used whole. A question matches a
# playbook if it contains one of its words, compared by stem. An entry of several words must match as a
# phrase. No model is called.

_FOLDER = Path(__file__).parent / "playbooks"
_MIN_SCORE = 2.0  # the minimal score: a word of the playbook's own counts 2, one of its text 1 (at most 3)
_MAX_SECTIONS = 2  # sections in a prompt
_QUESTION_WORDS = SEARCH_STOP_WORDS | frozenset(  # words of any question, which do not count
    "about all am any can could did do does from get give go had has have he her him his how itself just know let like make me more most "
    "much my need one only our out over should so some something than them us want we were what when where which who whom whose why would "
    "you your".split()
)


@dataclass(frozen=True)
class PlaybookSection:
    """A part of a playbook: its heading and its text."""

    playbook: str
    heading: str
    text: str


@dataclass(frozen=True)
class Playbook:
    """A guide: its name and title, the words and intents of questions that need it, and its sections."""

    name: str
    title: str
    words: tuple[str, ...]
    intents: tuple[str, ...]
    sections: tuple[PlaybookSection, ...]


class _PlaybookHeader(BaseModel):
    name: str
    title: str
    words: Annotated[tuple[str, ...], Field(min_length=1)]
    intents: tuple[str, ...] = ()


def read_playbook(path: Path) -> Playbook:
    """Read a playbook from a file.

    Raises BadInput with what is wrong in the file.
    """
    import yaml

    text = read_regular_text(path).replace("\r\n", "\n")
    head, marks, body = text.removeprefix("---\n").partition("\n---\n")
    if not text.startswith("---\n") or not marks:
        raise BadInput(f"{path.name} has no head between two lines of ---")
    try:
        header = _PlaybookHeader.model_validate(yaml.safe_load(head))
    except yaml.YAMLError as error:
        raise BadInput(f"the head of {path.name} is not YAML ({type(error).__name__})") from None
    except ValidationError as error:
        raise BadInput(f"the head of {path.name}: {describe_first_error(error)}") from None
    name = header.name
    require_known(f"intent in the head of {path.name}", INTENTS, *header.intents)
    sections = [part.partition("\n") for part in f"\n{body}".split("\n## ")[1:]]
    if not sections:
        raise BadInput(f"{path.name} has no sections that begin with ##")
    parts = tuple(PlaybookSection(name, heading.strip(), text.strip()) for heading, _, text in sections)
    if any(not part.heading or not part.text for part in parts):
        lacking = "text" if all(part.heading for part in parts) else "heading"
        raise BadInput(f"a section of {path.name} has no {lacking}")
    return Playbook(name, header.title, header.words, header.intents, parts)


@cache
def authored_playbooks() -> Mapping[str, Playbook]:
    """Return the playbooks that come with the package, by name."""
    found = [read_playbook(path) for path in sorted(_FOLDER.glob("*.md"))]
    return {each.name: each for each in found}


def matching_sections(
    question: str, allowed: Iterable[str], playbooks: Mapping[str, Playbook], *, intent: str = ""
) -> tuple[PlaybookSection, ...]:
    """Select at most two sections that match a question, from the allowed playbooks.

    Unknown playbook names are skipped.
    """
    question_phrase, question_stems = _stemmed_phrase(question), _content_stems(question)
    scored = []
    for name in dict.fromkeys(allowed):
        playbook = playbooks.get(name)
        if playbook is None:
            continue
        words = map(_stemmed_phrase, playbook.words)
        base_score = 2.0 * len({word for word in words if word.strip() and word in question_phrase})
        base_score += 1.0 * (intent in playbook.intents)
        for section in playbook.sections:
            overlap = len(question_stems & _content_stems(section.text))
            overlap += len(question_stems & _content_stems(section.heading))
            score = base_score + min(3.0, overlap)
            if base_score and score >= _MIN_SCORE:
                scored.append((score, section))
    scored.sort(key=lambda each: -each[0])  # stable: ties in the order of the skills
    return tuple(section for _, section in scored[:_MAX_SECTIONS])


def _stemmed_phrase(text: str) -> str:
    """Stem the words of a text and put each between spaces, so that phrases can be found as substrings."""
    return f" {' '.join(map(stem, casefold_words(text)))} "


def _content_stems(text: str) -> set[str]:
    """Return the stemmed content words of a text."""
    return {stem(word) for word in casefold_words(text) if len(word) > 1 and word not in _QUESTION_WORDS}


MAX_PROMPT_NODES, MAX_PROMPT_EDGES = 10, 15
_HISTORY_MESSAGES = 6  # of the conversation that are repeated
_DESCRIPTION_TOKENS, _MESSAGE_TOKENS, _PLAYBOOK_TOKENS = 50, 300, 350  # tokens of each
_PROSE_TOKENS = 150  # of the text under a heading, which is all that is known of it
_PROSE_TYPES = ("document", "section")
_LIMITATION_TOKENS = 30  # of the description of a limitation
# nodes with hints, and for each the dimensions that are furthest from the middle
_HINTED_NODES, _DIMENSIONS_PER_NODE = 3, 3
_REPLY_TOKENS = 600
PERSONA_STYLES: Mapping[str, str] = {
    "professional": "Write in a plain, professional manner.",
    "casual": "Write in a relaxed, friendly manner.",
    "academic": "Write precisely, as in a paper; name what is uncertain.",
    "concise": "Write briefly: three to six plain sentences.",
}


@dataclass(frozen=True)
class PromptContext:
    """The part of a search result that goes into the prompt.

    It has nodes, edges, all their limitations, what was cut, and what can be cited.
    """

    nodes: tuple[CitableNode, ...]  # in order of their scores
    limitations: tuple[CitableNode, ...]
    citable: tuple[CitableNode, ...]
    edges: tuple[Edge, ...]
    text: str
    hints: str
    plan: str
    cut: tuple[str, ...]


def prompt_context(known: KnownGraphs, result: SearchResult) -> PromptContext:
    """Select what a search over the graphs of an expert puts into its prompt."""
    index = graph_index(known.graph)
    result_ids = [id for node in result.nodes for id in node.sources]
    hits = result_ids[:MAX_PROMPT_NODES]
    shown = dict.fromkeys(hits)
    edges = tuple(edge for edge in result.edges if edge.source in shown or edge.target in shown)
    omitted = len(result_ids) - MAX_PROMPT_NODES
    cut = [f"{omitted} nodes beyond {MAX_PROMPT_NODES}"] if omitted > 0 else []
    omitted = len(edges) - MAX_PROMPT_EDGES
    cut += [f"{omitted} edges beyond {MAX_PROMPT_EDGES}"] if omitted > 0 else []
    edges = edges[:MAX_PROMPT_EDGES]
    ends = dict.fromkeys(end for edge in edges for end in (edge.source, edge.target))
    prompt_ids = dict.fromkeys([*shown, *ends])
    plan = result.answers.get("compose_for")
    plan = plan if isinstance(plan, Composition) else None
    steps = [step.tool for step in plan.steps] if plan else []
    limits = _collect_limitations(index, [*prompt_ids, *steps])
    limitation_ids = dict.fromkeys(each.id for those in limits.values() for each in those)
    limitations = (each for those in limits.values() for each in those)
    workaround_ids = dict.fromkeys(id for each in limitations for id in each.workarounds if id in known.graph)
    ids = dict.fromkeys([*prompt_ids, *limitation_ids, *workaround_ids, *steps])
    citable = {id: _citable_node(known, index, id) for id in ids}
    lines, cut_lines = _context_lines(index, result, citable, hits, edges, limits)
    return PromptContext(
        nodes=tuple(citable[id] for id in hits),
        limitations=tuple(citable[id] for id in limitation_ids),
        citable=tuple(citable.values()),
        edges=edges,
        text="\n".join(map(printable_line, lines)),
        hints="\n".join(map(printable_line, _hint_lines(index, citable, hits))),
        plan="\n".join(map(printable_line, _plan_lines(plan, citable))) if plan and len(steps) > 1 else "",
        cut=(*cut, *cut_lines),
    )


def empty_context(count: int) -> PromptContext:
    """Build an empty context for nodes that share no word with the question.

    Similarity of embeddings alone would mislead. `count` is the number of nodes left out.
    """
    return PromptContext((), (), (), (), "", "", "", (f"all {count} nodes: none has a word of the question",))


@dataclass(frozen=True)
class AnswerOptions:
    """What a client asks of an answer: its style in words, its length in tokens, where it stops, and sampling."""

    style: str = ""
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    seed: int | None = None


USUAL_OPTIONS = AnswerOptions()


@dataclass
class OutputLimit:
    """Cuts streamed text before a stop sequence, or after `max_tokens` words or as many tokens as estimated.

    `reason` is "stop" or "length" once it was cut.
    """

    options: AnswerOptions = USUAL_OPTIONS
    reason: str = ""
    _sent: str = ""
    _held: str = ""  # may be the beginning of a stop sequence

    def feed(self, piece: str, *, is_last: bool = False) -> str:
        """Add one piece and return the text that can be sent."""
        if self.reason:
            return ""
        held, stops = self._held + piece, self.options.stop
        begun = (n for stop in stops for n in range(1, len(stop)) if held.endswith(stop[:n]))
        end = len(held) - (0 if is_last else max(begun, default=0))
        if found := [position for stop in stops if (position := held.find(stop)) >= 0]:
            end, self.reason = min(found), "stop"
        self._held, whole = held[end:], self._sent + held[:end]
        if (budget := self.options.max_tokens) is not None:
            words = list(re.finditer(r"\S+", whole))
            most = min(budget * 4, words[budget - 1].end() if len(words) > budget else len(whole))
            if most < len(whole.rstrip()):
                whole, self.reason = whole[:most], "length"
        new, self._sent = whole[len(self._sent) :], whole
        return new


@dataclass(frozen=True)
class PromptQuestion:
    """A question, and the parts of its prompt other than the graph. Earlier messages are (role, content)."""

    question: str
    said: tuple[tuple[str, str], ...] = ()
    memories: tuple[str, ...] = ()
    sections: tuple[PlaybookSection, ...] = ()
    intent: str = ""
    options: AnswerOptions = USUAL_OPTIONS
    remote: str = ""  # answers of experts of other instances, each in a fence
    remote_nodes: tuple[CitableNode, ...] = ()  # the nodes that can be cited from those
    unsaid: tuple[str, ...] = ()  # words of the question on which the graphs say nothing


def expert_prompt(config: ExpertConfig, context: PromptContext, request: PromptQuestion) -> Prompt:
    """Build the prompt of an expert for a question."""
    persona = config.persona
    style = PERSONA_STYLES.get(persona.style, f"Style: {_one_line(persona.style)}.")
    parts = [f"You are {_one_line(persona.name)}. {persona.instructions}".strip(), style]
    options = request.options
    if options.style.strip():
        wishes = truncate_to_tokens(options.style.strip(), _MESSAGE_TOKENS)
        parts.append(f"[Client Instructions]\nOn the manner of the answer alone: {wishes}")
    if context.text:
        head = f"[Knowledge Graph Context]\nSource: {', '.join(config.graphs)}\nIntent: {request.intent or 'none'}"
        plan = f"\n[Composition Plan]\n{context.plan}" if context.plan else ""
        hints = f"\n[Dimension Hints]\n{context.hints}" if context.hints else ""
        parts.append(f"{head}\n{fence_text(context.text + plan + hints, 'the graph')}")
    if request.remote:
        parts.append(f"[Remote Expert]\n{request.remote}")
    if request.sections:
        shorten = partial(truncate_to_tokens, budget=_PLAYBOOK_TOKENS)
        texts = (f"{each.playbook}: {each.heading}\n{shorten(each.text)}" for each in request.sections)
        parts.append("[Playbook Context]\n" + "\n\n".join(texts))
    if remembered := "\n".join(f"- {_one_line(memory)}" for memory in request.memories):
        parts.append(f"[Memory]\n{fence_text(remembered, 'earlier conversations')}")
    citable = (*context.citable, *request.remote_nodes)
    by_sentence = config.answers_in == "sentences" and bool(citable)
    instructions = _CITATION_INSTRUCTIONS if context.nodes else _NO_CONTEXT_INSTRUCTIONS
    parts.append(_SENTENCE_INSTRUCTIONS if by_sentence else instructions)
    schema = sentences_schema(citable, allow_unknown=bool(request.unsaid)) if by_sentence else None
    if request.unsaid and citable:
        unsaid = ", ".join(map(_one_line, request.unsaid))
        parts.append(f"Nothing that was found in the knowledge graph says: {unsaid}.")
        if by_sentence:
            instruction = f'write one sentence, with the source "{NO_SOURCE}": {NOT_KNOWN}'
            parts.append(f"If it does not answer the question, {instruction}")
    messages = [Message("system", "\n\n".join(parts))]
    messages += [
        Message("assistant" if role == "assistant" else "user", truncate_to_tokens(text, _MESSAGE_TOKENS))
        for role, text in request.said[-_HISTORY_MESSAGES:]
    ]
    # with a schema most tokens are of its form, so only the text that is sent is cut
    most = _REPLY_TOKENS if schema or options.max_tokens is None else min(options.max_tokens, _REPLY_TOKENS)
    messages.append(Message("user", request.question))
    return Prompt(tuple(messages), schema, options.temperature, options.seed, most)


_CITATION_INSTRUCTIONS = (
    f"[Citation Instructions]\n{FENCES}\nAnswer the question in two to four sentences with what the knowledge graph says, and name a "
    "limitation of what you recommend. End each sentence with its source in brackets, [Source: …], copied from the line of the node that "
    "it rests on. If the graph does not answer the question, say that you do not know."
)
_SENTENCE_INSTRUCTIONS = (
    f"[Citation Instructions]\n{FENCES}\nAnswer the question in two to four sentences with what the knowledge graph says. Of each sentence "
    "give first the source that it rests on, copied from the line of the node, then the sentence. Begin with what helps most; the last "
    "sentence names a limitation of what you recommend."
)
_NO_CONTEXT_INSTRUCTIONS = (
    "[Citation Instructions]\nThe knowledge graph holds nothing on this question. Say so, and do not cite anything. "
    + FENCES
)


def _collect_limitations(index: GraphIndex, ids: Iterable[str]) -> dict[str, tuple[Limitation, ...]]:
    """Return the limitations of nodes, of their workarounds, and so on, by node id.

    Workarounds are included because anything that a prompt names may be recommended.
    """
    limits: dict[str, tuple[Limitation, ...]] = {}
    seen, pending = set[str](), list(dict.fromkeys(ids))
    while pending:
        seen.update(pending)
        rows = limitations_by_row(index, [index.graph.row(id) for id in pending])
        found = {index.graph.ids[row]: those for row, those in rows.items()}
        limits |= found
        limitations = (each for those in found.values() for each in those)
        named = dict.fromkeys(id for each in limitations for id in (each.id, *each.workarounds))
        pending = [id for id in named if id not in seen]
    return limits


def _citable_node(known: KnownGraphs, index: GraphIndex, id: str) -> CitableNode:
    row = known.graph.row(id)
    name, own = known.split_id(id)
    return CitableNode(name, own, index.names[row], index.label_texts[row])


def _context_lines(
    index: GraphIndex,
    result: SearchResult,
    citable: Mapping[str, CitableNode],
    hits: Sequence[str],
    edges: Sequence[Edge],
    limits: Mapping[str, Sequence[Limitation]],
) -> tuple[list[str], list[str]]:
    lines, cut = [], []
    for id in hits:
        node = citable[id]
        lines.append(f"- [{node.type}] {_one_line(node.name)} [Source: {_one_line(node.handle)}]")
        if text := index.graph.node_properties[index.graph.row(id)].get("description"):
            whole = _one_line(str(text))
            limit = _PROSE_TOKENS if node.type in _PROSE_TYPES else _DESCRIPTION_TOKENS
            short = truncate_to_tokens(whole, limit)
            cut += [f"the description of {_one_line(node.name)}"] if short != whole else []
            lines.append(f"  {_one_line(short)}")
    if edges:
        lines += ["Relationships:"] + [
            f"  {_display_name(index, edge.source)} --[{edge.type}]--> {_display_name(index, edge.target)}"
            for edge in edges
        ]
    if limits:
        lines.append("Limitations:")
    names_by_limitation: dict[Limitation, list[str]] = {}  # each is listed once, with all nodes that have it
    for id, those in limits.items():
        for each in those:
            names_by_limitation.setdefault(each, []).append(_display_name(index, id))
    for each, names in names_by_limitation.items():
        text = _one_line(truncate_to_tokens(each.description, _LIMITATION_TOKENS)).rstrip(".")
        description = f": {text}" if each.description else ""
        helpers = ", ".join(_display_name(index, one) for one in each.workarounds)
        workarounds = f"; what helps: {helpers}" if each.workarounds else ""
        no_workaround = "; no workaround is known" if each.blocking and not each.workarounds else ""
        lines.append(
            f"  {', '.join(names)}: {_one_line(each.name)} [Source: {_one_line(citable[each.id].handle)}]"
            f"{description}{workarounds}{no_workaround}"
        )
    return lines, cut


def _hint_lines(index: GraphIndex, citable: Mapping[str, CitableNode], hits: Sequence[str]) -> Iterator[str]:
    """Yield a line for each node with its most informative dimensions.

    These are the dimensions of the catalogue whose values are furthest from 0.5.
    """
    for id in hits[:_HINTED_NODES]:
        values = rated_dimensions(index.graph.node_properties[index.graph.row(id)])
        extreme = sorted(values, key=lambda name: (-abs(values[name] - 0.5), name))[:_DIMENSIONS_PER_NODE]
        if extreme:
            yield f"- {_one_line(citable[id].name)}: {', '.join(f'{name} {values[name]:.2g}' for name in extreme)}"


def _plan_lines(plan: Composition, citable: Mapping[str, CitableNode]) -> Iterator[str]:
    for number, step in enumerate(plan.steps, start=1):
        yield f"  Step {number}: {_one_line(step.name)} [Source: {_one_line(citable[step.tool].handle)}] -> {_one_line(step.action)}"
    yield from (f"  Warning: {_one_line(warning)}" for warning in plan.warnings)


def _display_name(index: GraphIndex, id: str) -> str:
    return _one_line(index.names[index.graph.row(id)]) if id in index.graph else _one_line(id)


def _one_line(text: str) -> str:
    return " ".join(text.split())


# The memory of an expert: earlier conversations of the same person with the same expert only.

_MAX_SEARCHED_MESSAGES = 2_000  # past messages, the latest first
_MAX_MEMORY_LENGTH = 400  # characters of each that are used


def recall_messages(
    question: str, messages: Sequence[tuple[str, str, str]], *, limit: int = 5
) -> tuple[tuple[str, str], ...]:
    """Return the earlier messages that match a question best by BM25, as (id, text), at most `limit`.

    `messages` has (id, role, content).
    """
    question_words = set(content_words(question))
    recent = messages[:_MAX_SEARCHED_MESSAGES]
    documents = [Document(id, text) for id, _, text in recent if question_words & set(content_words(text))]
    if not documents:
        return ()
    roles = {id: role for id, role, _ in messages}
    texts = {document.id: " ".join(document.text.split())[:_MAX_MEMORY_LENGTH] for document in documents}
    hits = bm25(documents).search(question).hits
    selected: dict[str, str] = {}
    for id, score in hits:
        if score > 0 and texts[id] not in selected.values():
            selected[id] = texts[id]
        if len(selected) == limit:
            break
    return tuple((id, f"{roles[id]}: {text}") for id, text in selected.items())
