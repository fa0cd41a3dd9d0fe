"""Answer questions about a graph with a model that sees only the retrieved context, or return the context."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import read_regular_text, write_atomically
from kgot_lab.kgos.methods.index import graph_index, resolve_node
from kgot_lab.kgos.methods.overview import find_clusters, overview, starting_points
from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.methods.search.results import search_context
from kgot_lab.kgos.query.questions import MIN_COSINE
from kgot_lab.llm.adapters import as_model
from kgot_lab.text.cleaning import FENCES, estimate_tokens, fence_text, truncate_to_tokens
from kgot_lab.types import LLM, Message, Prompt, Usage

_CONTEXT_TOKENS = 3_000  # tokens of a context
_REPLY_TOKENS = 400
_SYSTEM_PROMPT = (
    "You answer from what a knowledge graph says, which follows, and from nothing else. Name the nodes that you rely on by their ids in "
    "square brackets, as in [goal:reduce_costs]. Where the graph does not say it, say so. " + FENCES
)
_CITATION = re.compile(r"\[([^\[\]\n]{1,300})\]")
_MAX_TURNS = 6  # turns of a conversation in a prompt


@dataclass(frozen=True)
class TextAnswer:
    """An answer with its context, the nodes in it, those that the text cites, and citations of nodes outside
    the context.
    """

    question: str
    text: str
    context: str
    nodes: tuple[str, ...]
    cited: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    model: str = ""
    usage: Usage = Usage()


@dataclass(frozen=True)
class ConversationTurn:
    """A question and its answer in a conversation."""

    question: str
    text: str
    nodes: tuple[str, ...]


@check_arguments
def answer_question(
    graph: PropertyGraph,
    question: str,
    llm: LLM | None = None,
    *,
    before: tuple[ConversationTurn, ...] = (),
    limit: int = 10,
    embedder: Embedder | None = None,
) -> TextAnswer:
    """Generate an answer to a question about a graph.

    If other questions came before it, what they found is used for the search too, and meaning with an
    embedder. Raises BadInput and
    LLMError.
    """
    looked_for = " ".join([question, *(turn.question for turn in before[-1:])])
    config = RetrievalConfig(limit=limit, min_cosine=MIN_COSINE)
    found = intent_search(graph, looked_for, config=config, embedder=embedder)
    context = search_context(found)
    if before and (known := [id for id in before[-1].nodes if id in graph]):
        context += "\nAsked about before:\n" + _format_nodes(graph, known)
    nodes = dict.fromkeys([*(node.id for node in found.nodes), *(near.id for near in found.neighbours)])
    nodes |= dict.fromkeys(before[-1].nodes if before else ())
    return _generate_answer(question, context, tuple(nodes), llm, before)


@check_arguments
def explain_node(graph: PropertyGraph, node: str, llm: LLM | None = None) -> TextAnswer:
    """Explain a node by its properties and edges, in words if there is a model.

    Raises UnknownName, BadInput and LLMError.
    """
    id = resolve_node(graph, node)
    ends = (end for edge in graph.neighbours(id, "both") for end in (edge.source, edge.target))
    question = f"What is {graph_index(graph).names[graph.row(id)]}, and what is it for?"
    return _generate_answer(question, _format_nodes(graph, [id]), tuple(dict.fromkeys([id, *ends])), llm)


@check_arguments
def summarise_graph(graph: PropertyGraph, llm: LLM | None = None) -> TextAnswer:
    """Summarise a graph: its contents, starting points and clusters, in words if there is a model.

    Raises LLMError.
    """
    parts = [overview(graph), starting_points(graph, each=3), find_clusters(graph, most=8)]
    lines: list[str] = []
    for part in parts:
        lines += [f"{part.title}:", *("  " + ", ".join(map(_format_value, row)) for row in part.rows()[:30])]
    nodes = tuple(dict.fromkeys(id for part in parts for id in part.ids))
    question = "What is this graph about? Begin with the whole, then its parts."
    return _generate_answer(question, "\n".join(lines), nodes, llm)


def answer_prompt(question: str, context: str, before: tuple[ConversationTurn, ...] = ()) -> Prompt:
    """Build the prompt: the context behind a fence, the last turns, and the question."""
    messages = [Message("system", _SYSTEM_PROMPT)]
    for turn in before[-_MAX_TURNS:]:
        messages += [Message("user", turn.question), Message("assistant", turn.text)]
    text = fence_text(truncate_to_tokens(context, _CONTEXT_TOKENS), "the graph")
    messages.append(Message("user", f"{text}\n\nQuestion: {question}"))
    return Prompt(tuple(messages), max_tokens=_REPLY_TOKENS)


def count_prompt_tokens(prompt: Prompt) -> tuple[int, int]:
    """About how many tokens a prompt has, and how many its reply may have."""
    return sum(estimate_tokens(message.text) for message in prompt.messages), prompt.max_tokens


def _generate_answer(
    question: str,
    context: str,
    nodes: tuple[str, ...],
    llm: LLM | None,
    before: tuple[ConversationTurn, ...] = (),
) -> TextAnswer:
    answer = TextAnswer(question, context, context, nodes)
    if llm is None:
        return answer
    llm = as_model(llm)
    reply = llm(answer_prompt(question, context, before))
    groups = (match.split(",") for match in _CITATION.findall(reply.text))
    cited = tuple(dict.fromkeys(id.strip() for group in groups for id in group))
    known = set(nodes)
    true = tuple(each for each in cited if each in known)
    false = tuple(each for each in cited if each not in known and _may_be_id(each))
    return replace(
        answer, text=reply.text.strip(), cited=true, false=false, model=llm.name, usage=reply.usage
    )


def _may_be_id(text: str) -> bool:
    """Return whether a text in brackets may be a node id.

    A footnote number or several words are not.
    """
    return not text.isdigit() and " " not in text and len(text) > 1


def _format_nodes(graph: PropertyGraph, ids: list[str]) -> str:
    """Format nodes with their properties and edges as text."""
    lines = []
    for id in ids:
        node = graph.node(id)
        lines.append(f"{node.properties.get('name') or id} (node: {id}; type: {' '.join(node.labels)})")
        shown = {key: value for key, value in node.properties.items() if key != "name"}
        lines += [f"  {key}: {_format_value(value)}" for key, value in shown.items()]
        lines += [f"  --[{edge.type}]--> {edge.target}" for edge in graph.neighbours(id, "out")]
        lines += [f"  <--[{edge.type}]-- {edge.source}" for edge in graph.neighbours(id, "in")]
    return "\n".join(lines)


def _format_value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


class Conversation:
    """Questions and answers stored in a file, so that follow-up questions are possible."""

    def __init__(self, path: Path):
        self.path = path
        self.turns: tuple[ConversationTurn, ...] = ()
        if path.exists():
            try:
                stored = json.loads(read_regular_text(path))
                turns = ((t["question"], t["text"], tuple(t["nodes"])) for t in stored["turns"])
                self.turns = tuple(ConversationTurn(*turn) for turn in turns)
            except (OSError, ValueError, TypeError, KeyError) as error:
                kind = type(error).__name__
                raise BadInput(f"{path} holds no conversation ({kind}): name another file") from None

    def add(self, answer: TextAnswer) -> None:
        """Store a question and its answer."""
        self.turns = (*self.turns, ConversationTurn(answer.question, answer.text, answer.nodes))
        rows = [{"question": t.question, "text": t.text, "nodes": list(t.nodes)} for t in self.turns]
        content = json.dumps({"conversation": 1, "turns": rows}, ensure_ascii=False, indent=1)
        write_atomically(self.path, content + "\n", "the conversation")
