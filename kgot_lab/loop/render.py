"""Render a graph as text for a prompt: its schema, then its facts within a token budget.

A large graph is not read as a whole.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kgot_lab.graph.changes import PROVENANCE_PROPERTIES, latest_sentence
from kgot_lab.loop.events import Cut
from kgot_lab.stores.embedded_store import PYTHON, fact_of
from kgot_lab.stores.protocol import Dialect, Schema, Store
from kgot_lab.text.cleaning import estimate_tokens, truncate_to_tokens
from kgot_lab.text.words import content_words
from kgot_lab.types import Edge, Json, Node, Rows

# Selection within a token budget: texts ranked by the words they share with the question.


def relevance(question: str, texts: Sequence[str]) -> list[float]:
    """Score each text by the summed idf of the words it shares with the question, idf = ln(1 + n / df)."""
    question_words = set(content_words(question))
    word_sets = [set(content_words(text)) for text in texts]
    frequency = Counter(word for words in word_sets for word in words)
    # in whatever order a set has
    shared = question_words & frequency.keys()
    weights = {word: math.log(1 + len(texts) / frequency[word]) for word in shared}
    return [math.fsum(weights[word] for word in shared & words) for words in word_sets]


def fit_budget(
    question: str, texts: Sequence[str], budget: int, *, bonus: Sequence[float] = (), min_share: float = 0.0
) -> tuple[list[int], int]:
    """Select the most relevant texts that fit a token budget, one a line.

    Returns the indices of the texts in their original order, and the number of tokens left out. `bonus` is
    added to the relevance of each text. A text below `min_share` times the best score is left out even if there
    is room. The best text is included even if it alone exceeds the budget.
    """
    sizes = [estimate_tokens(text) for text in texts]
    if max(sum(sizes), estimate_tokens("\n".join(texts))) <= budget and not min_share:
        return list(range(len(texts))), 0
    scores = relevance(question, texts)
    if bonus:
        scores = [score + added for score, added in zip(scores, bonus, strict=True)]
    min_score = min_share * max(scores, default=0.0)
    selected: list[int] = []
    used, shown = 0, ""
    for number in sorted(range(len(texts)), key=lambda number: (-scores[number], number)):
        longer = f"{shown}\n{texts[number]}" if selected else texts[number]
        size = max(used + sizes[number], estimate_tokens(longer))
        if not selected or (size <= budget and scores[number] >= min_score):
            selected.append(number)
            used, shown = used + sizes[number], longer
    return sorted(selected), sum(sizes) - used


def join_lines(parts: Iterable[str]) -> str:
    """Join the lines that are not empty."""
    return "\n".join(part for part in parts if part)


_MAX_WHOLE = 400  # nodes and edges up to which all facts are looked at; a larger graph is searched


def render_graph(
    store: Store, question: str, budget: int, *, sources: bool = False
) -> tuple[str, Cut | None]:
    """Render the graph as lines in the store's language, the most relevant if not all fit.

    Returns the text and, if something was left out, the Cut event. With `sources`, facts are plain, and those
    from one sentence share a line with it.
    """
    schema = store.schema()
    if not schema.nodes:
        return "", None
    if schema.nodes + schema.edges <= _MAX_WHOLE:
        graph = store.graph()
        nodes, edges, unseen = list(graph.nodes), list(graph.edges), 0
    else:
        nodes, edges, unseen = _search_graph(store, question, schema)
    lines = list(_format_graph(nodes, edges, None if sources else store.dialect))
    head = _format_schema(schema)
    selected, left_out = fit_budget(question, lines, budget - estimate_tokens(head))
    left_out += unseen
    shown = [head, *(lines[number] for number in selected)]
    if not left_out:
        return join_lines(shown), None
    kept = estimate_tokens(join_lines(shown[1:]))
    return join_lines([*shown, "(more facts not shown)"]), Cut(what="graph", kept=kept, left_out=left_out)


def _search_graph(store: Store, question: str, schema: Schema) -> tuple[list[Node], list[Edge], int]:
    """Return the part of a large graph near the question, and an estimate of the tokens not read."""
    nodes = {node.id: node for node in store.search(question, limit=30)}
    edges = {edge.identity: edge for id in nodes for edge in store.neighbours(id)[:40]}
    unseen = schema.nodes + schema.edges - len(nodes) - len(edges)
    return list(nodes.values()), list(edges.values()), unseen * 8  # a fact has about eight tokens


def _format_graph(nodes: Iterable[Node], edges: Sequence[Edge], dialect: Dialect | None) -> Iterable[str]:
    degree = Counter(id for edge in edges for id in (edge.source, edge.target))
    for node in nodes:
        shown = replace(node, properties=_visible_properties(node.properties))
        if shown.properties or node.labels or not degree[node.id]:
            yield truncate_to_tokens((dialect or PYTHON).node(shown), 100)
    if dialect is None:
        yield from group_by_sentence((fact_of(edge), latest_sentence(edge.properties)) for edge in edges)
    else:
        for edge in edges:
            shown_edge = replace(edge, properties=_visible_properties(edge.properties))
            yield truncate_to_tokens(dialect.edge(shown_edge), 100)


def group_by_sentence(facts: Iterable[tuple[str, str]]) -> list[str]:
    """Format facts as lines, with the facts from one sentence on one line before that sentence."""
    groups: dict[str, list[str]] = {}
    for text, sentence in facts:
        groups.setdefault(sentence or text, []).append(text)
    return ["; ".join(facts) + ("" if text == facts[0] else f' ("{text}")') for text, facts in groups.items()]


def _visible_properties(properties: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in properties.items() if name not in PROVENANCE_PROPERTIES}


def _format_schema(schema: Schema) -> str:
    kinds, relations = _format_counts(schema.labels), _format_counts(schema.relations)
    nodes = f"{schema.nodes} nodes" + (f" ({kinds})" if kinds else "")
    return truncate_to_tokens(f"{nodes}, {schema.edges} edges" + (f" ({relations})" if relations else ""), 60)


def _format_counts(counts: Mapping[str, int], limit: int = 8) -> str:
    order = sorted(counts, key=lambda name: (-counts[name], name))
    listed = ", ".join(f"{name} {counts[name]}" for name in order[:limit])
    return f"{listed}, …" if len(order) > limit else listed


def row_lines(rows: Rows) -> list[str]:
    """Format rows as lines, with the triples from one sentence together."""

    def line_and_sentence(row: Json) -> tuple[str, str]:
        sentence = latest_sentence(row) if isinstance(row, dict) else ""
        return row_text({**row, "sentence": ""} if sentence else row), sentence

    return list(dict.fromkeys(group_by_sentence(dict.fromkeys(map(line_and_sentence, rows)))))


def row_text(row: Json) -> str:
    """Format a row as one line: a triple with its sentence, or plain JSON."""
    if isinstance(row, dict) and {"subject", "relation", "object"} <= row.keys():
        triple = f"{row['subject']} {row['relation']} {row['object']}"
        hidden = {"subject", "relation", "object", *PROVENANCE_PROPERTIES}
        properties = ", ".join(f"{name}: {value}" for name, value in row.items() if name not in hidden)
        sentence = latest_sentence(row)
        return triple + (f" ({properties})" if properties else "") + (f' ("{sentence}")' if sentence else "")
    return row if isinstance(row, str) else json.dumps(row, ensure_ascii=False, default=str)
