"""Resolve the names and earlier events in an item of news to nodes of the graph.

A node is resolved only if the item itself names it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from kgot_lab.domains.investment.monitor.news import ITEM_NODE_TYPES
from kgot_lab.domains.investment.versions import EdgeKey, edge_key
from kgot_lab.domains.investment.view import (
    InvestmentView,
    action_of,
    display_name,
    investment_node,
    name_key,
    symbol_key,
    symbol_of,
)
from kgot_lab.errors import BadInput, UnknownName, short_repr
from kgot_lab.io.files import read_regular_text
from kgot_lab.text.cleaning import plain_text
from kgot_lab.text.words import CONTENT_STOP_WORDS, content_words, name_tokens, stem
from kgot_lab.types import Edge, Json, Node

# Whether an item of news contains what a model read in it: names as the item writes them, symbols exactly.

MAX_NAME_LENGTH = 120  # characters of a name; a summary may have three times as many
_LEGAL = "inc incorporated corp corporation co company ltd limited llc plc ag se sa nv spa ab asa oyj kk"
_LEGAL_FORMS = frozenset(_LEGAL.split())
_WORD = re.compile(r"\w+")


def strip_legal_form(name: str) -> tuple[str, ...]:
    """Return the words of a name without a leading article and trailing legal forms.

    "The Apple Company, Inc." becomes apple.
    """
    words = name_tokens(name)
    while len(words) > 1 and words[-1] in _LEGAL_FORMS:
        words = words[:-1]
    return words[1:] if len(words) > 1 and words[0] == "the" else words


def contains_name(text: str, name: str) -> bool:
    """Return whether a text contains the words of a name in a row, possibly without its legal form.

    "The company" is not a name.
    """
    bare = " ".join(strip_legal_form(name))
    names = set(content_words(bare)) - _LEGAL_FORMS
    return bool(names) and f" {bare} " in f" {' '.join(name_tokens(text))} "


def contains_symbol(text: str, symbol: str) -> bool:
    """Return whether a text contains a symbol as a separate word, in the same case.

    SAL.MD and SAL-29 do not contain SAL.
    """
    pattern = rf"(?<!\w)(?<!\w[.-]){re.escape(symbol)}(?!\w|[.-]\w)"
    return bool(symbol) and re.search(pattern, text) is not None


def distinctive_names(summary: str) -> list[str]:
    """Return the words of a summary that are names or numbers, by their capitals or digits.

    The capital of the first word does not count.
    """
    words = _WORD.findall(summary)
    return [w for i, w in enumerate(words) if (i and w != w.lower()) or any(map(str.isdigit, w))]


def unsupported_names(text: str, summary: str) -> list[str]:
    """Return the names and numbers of a summary that are not in a text."""
    text_words = set(name_tokens(text))
    return [word for word in distinctive_names(summary) if not text_words.issuperset(name_tokens(word))]


# The earlier event that words such as "the fire in its warehouse" refer to: the one that they match, or none.
#
# All names and numbers among the words must belong to the event, more than half of all words must, and at
# least one of these must be more than a name of what it affects. Of several such events the one with the most
# words is chosen, or else the one that affects what the item names, or none in case of a tie.

_AFFECTED_EDGES = ("affects", "about")  # from an event or an observation to what it affects


_WITH_PARTICLE = re.compile(r"\b(?!(?:is|are|was|were|be|been)\b)(\w+) (out|off|down|up|over|back|in)\b")


@cache
def _event_vocabulary() -> tuple[dict[str, str], dict[str, str], dict[str, str], frozenset[str]]:
    """Read the kind of each stem, the word of each phrase, the verb of each form, and the stems of denials."""
    path = Path(__file__).with_name("event_words.txt")
    kinds, *pairs, denying = re.split(r"#.*\n", read_regular_text(path))[1:]
    kind_of = {stem(word): stem(row.split()[0]) for row in kinds.splitlines() for word in row.split()}
    phrases, forms = (dict(pair.split("/") for pair in each.splitlines()) for each in pairs)
    return kind_of, phrases, forms, frozenset(map(stem, denying.split()))


def event_words(texts: Iterable[str]) -> set[str]:
    """Return the content words of texts, without those of a denial, and one for each kind of event.

    "There was no walkout" and "they walked out" share a word.
    """
    kind_of, phrases, forms, denying = _event_vocabulary()
    text = " ".join(name_tokens(" ".join(texts)))
    for phrase, word in phrases.items():
        text = re.sub(rf"\b{phrase}\b", word, text)
    joined = _WITH_PARTICLE.sub(lambda pair: f"{forms.get(pair[1]) or stem(pair[1])}{pair[2]}", text)
    stems = [stem(forms.get(w, w)) for w in name_tokens(joined) if w not in CONTENT_STOP_WORDS]
    return {kind_of.get(word, word) for word in stems} - denying


def find_described_nodes(words: str, view: InvestmentView, types: Sequence[str], text: str) -> list[Node]:
    """Return the live nodes of some types that words of an item with a text most likely refer to.

    Types are events, and also observations if `types` includes them. Among those that match equally well, what
    the text names is affected, if it is by any. Returns several if that does not decide, and none if nothing
    matches.
    """
    terms, query_names = event_words([words]), event_words(distinctive_names(words))
    candidates = [node.node for node in view.nodes(*types) if not node.node.properties.get("action")]
    edges = view.edges_from([node.id for node in candidates], _AFFECTED_EDGES)
    affected = {each.node.id: each.node for each in view.nodes_by_id(edge.edge.target for edge in edges)}
    ranked: dict[tuple[int, bool], list[Node]] = {}
    for node in candidates:
        ends = [affected[edge.edge.target] for edge in edges if edge.edge.source == node.id]
        affected_words = event_words(map(display_name, ends))
        type = str(node.properties["type"]).replace("_", " ")
        own_words = event_words([str(node.properties["summary"]), type])
        shared = terms & (own_words | affected_words)
        if query_names <= shared and 2 * len(shared) > len(terms) and terms & (own_words - affected_words):
            is_named = any(contains_name(text, display_name(end)) for end in ends)
            ranked.setdefault((len(shared), is_named), []).append(node)
    return ranked[max(ranked)] if ranked else []


class ItemNames:
    """Names as an item uses them. `taken` has the nodes accepted from the item, `there` those of the graph looked up, by id."""

    def __init__(self, text: str, view: InvestmentView) -> None:
        self.taken: dict[str, Node] = {}
        self._text, self._view = text, view
        self.there: dict[str, Node] = {}

    def meant(self, text: str) -> list[Node]:
        """Return the nodes that a name or symbol may refer to, the likeliest first.

        These are accepted nodes, and nodes of the graph if the item contains the name or symbol.
        """
        text = clean_text(text)
        stands = contains_name(self._text, text) or contains_symbol(self._text, text)
        nodes = [each.node for each in (self._view.named(text) if stands else ())]
        found = {node.id: node for node in nodes if node.labels[0] not in ITEM_NODE_TYPES}
        self.there |= found
        taken = (node for node in self.taken.values() if node.labels != ("News",))
        found |= {node.id: node for node in taken if _has_name(node, text)}
        ordered = sorted(found.values(), key=lambda node: node.id)
        by_symbol = self._narrow_by_full_name([node for node in ordered if _has_symbol(node, text)])
        return by_symbol + [node for node in ordered if not _has_symbol(node, text)]

    def earlier_event(self, words: str, *types: str) -> Node:
        """Return the earlier node of the graph that some words of the item refer to.

        Raises BadInput if there is none, or several.
        """
        words = clean_text(words)
        if unsupported := unsupported_names(self._text, words):
            raise BadInput(f"{', '.join(map(short_repr, unsupported[:5]))} does not stand in the item")
        found = find_described_nodes(words, self._view, types, self._text)
        self.there |= {each.id: each for each in found}
        if not found:
            raise BadInput("nothing that is live was told before in such words")
        return require_one_node(found)

    def thing(self, type: str, name: str, symbol: str) -> Node:
        """Resolve a thing of a type by its symbol, or else its name, to a node of the graph or a new one.

        A node of the graph is returned with its new properties. Raises BadInput if several nodes match, or a
        company has another ticker.
        """
        meant = (node for node in self.meant(symbol) if node.labels == (type,))
        by_symbol = [node for node in meant if _has_symbol(node, symbol)]
        if type == "Asset":
            return require_one_node(by_symbol) if by_symbol else make_node(type, symbol=symbol_key(symbol))
        is_symbol = symbol_key(name) == symbol_key(symbol)  # the item calls the company by its ticker
        bare = set(strip_legal_form(name))
        same_name = [n for n in by_symbol if is_symbol or set(strip_legal_form(display_name(n))) & bare]
        if by_symbol and not same_name:
            problem = f"the symbol {symbol_key(symbol)} is that of {_list_nodes(by_symbol)}"
            raise BadInput(f"{problem}: which is meant is not said")
        found = same_name or [each for each in self.meant(name) if each.labels == (type,)]
        found = found or self._same_bare_name(type, name)
        ticker = {"ticker": symbol} if type == "Company" and symbol else {}
        if not found:
            return make_node(type, name=name, **ticker)
        node = require_one_node(found)
        other = node.properties.get("ticker", symbol)
        if ticker and symbol_key(other) != symbol_key(symbol):
            raise BadInput(f"{_list_nodes([node])} has another ticker, {short_repr(other)}")
        return Node(node.id, node.labels, ticker | dict(node.properties))

    def edges_between(self, sources: Sequence[str], type: str, targets: Sequence[str]) -> list[Edge]:
        """Return the live edges of a type from some nodes to others.

        The direction of a symmetric edge does not matter.
        """
        try:
            symmetric = self._view.vocabulary.edge_type(type).symmetric
        except UnknownName:
            return []
        directions = [(sources, targets), *([(targets, sources)] if symmetric else [])]
        found = ((e.edge, to) for start, to in directions for e in self._view.edges_from(start, [type]))
        return [edge for edge, targets in found if edge.target in targets]

    def calls(self, said_by: str, about: Sequence[Node]) -> dict[str, list[EdgeKey]]:
        """Return the live signals of a person on some nodes, by id, each with its edges to them.

        A company and what it issued count as one, as do a full name and a part of it.
        """
        ids = {node.id for node in about} if name_tokens(said_by) else set()
        issued = [each.edge for each in self._view.edges_from(ids, ["issued_by"])] if ids else []
        issued += [each.edge for each in self._view.edges_to(ids, ["issued_by"])] if ids else []
        ids |= {end for edge in issued for end in (edge.source, edge.target)}
        edges = [each.edge for each in self._view.edges_to(ids, ["about"])] if ids else []
        found: dict[str, list[EdgeKey]] = {}
        for insight in self._view.nodes_by_id(edge.source for edge in edges):
            node, giver = insight.node, set(name_tokens(str(insight.node.properties.get("said_by", ""))))
            asked = set(name_tokens(said_by))
            if action_of(node) and giver and (giver <= asked or asked <= giver):
                found[node.id] = [edge_key(edge) for edge in edges if edge.source == node.id]
                self.there[node.id] = node
        return found

    def superseded(self, calls: Mapping[str, list[EdgeKey]]) -> list[str | EdgeKey]:
        """Return what ends of some calls when a later one takes their place: a call, or its edges to some."""
        about = [edge_key(each.edge) for each in self._view.edges_from(calls, ["about"])]
        whole = {id for id, edges in calls.items() if {e for e in about if e[0] == id} <= set(edges)}
        return [end for id, edges in calls.items() for end in ([id] if id in whole else edges)]

    def changed_nodes(self) -> tuple[Node, ...]:
        """Return the accepted nodes and properties that are not in the graph yet."""
        found = []
        for id, node in self.taken.items():
            existing = self.there.get(id)
            known = existing.properties if existing else {}
            new_properties = {name: value for name, value in node.properties.items() if name not in known}
            if new_properties:
                found.append(Node(id, node.labels, new_properties))
        return tuple(found)

    def _narrow_by_full_name(self, nodes: Sequence[Node]) -> list[Node]:
        """Narrow nodes that share a symbol to the one that the item names in full, for each type.

        Nodes of a type are kept if the item names none of them, or several.
        """
        named_ids = {node.id for node in nodes if contains_name(self._text, display_name(node))}
        counts = Counter(node.labels for node in nodes if node.id in named_ids)
        return [node for node in nodes if node.id in named_ids or counts[node.labels] != 1]

    def _same_bare_name(self, type: str, name: str) -> list[Node]:
        """Return the nodes of a type whose names differ only in article or legal form."""
        bare, nodes = strip_legal_form(name), (node.node for node in self._view.nodes(type))
        found = [node for node in nodes if strip_legal_form(display_name(node)) == bare]
        self.there |= {each.id: each for each in found}
        return found


def require_one_node(nodes: Sequence[Node]) -> Node:
    """Return the only node.

    Raises BadInput with the candidates if there are several.
    """
    if len(nodes) > 1:
        raise BadInput(f"it may be {_list_nodes(nodes)}: which is meant is not said")
    return nodes[0]


def make_node(kind: str, /, **properties: Json) -> Node:
    """Create a node without empty properties."""
    given = {name: value for name, value in properties.items() if value not in ("", None)}
    return investment_node(kind, **given)


def clean_text(text: str) -> str:
    """Normalize a text from a model: one line, with only storable characters."""
    return " ".join(plain_text(text).split())


def _has_name(node: Node, text: str) -> bool:
    if _has_symbol(node, text) or name_key(display_name(node)) == name_key(text):
        return True
    return strip_legal_form(display_name(node)) == strip_legal_form(text)


def _has_symbol(node: Node, text: str) -> bool:
    return bool(symbol_key(text)) and symbol_of(node.labels[0], node.properties) == symbol_key(text)


def _list_nodes(nodes: Sequence[Node]) -> str:
    return " and ".join(f"{display_name(node)} ({short_repr(node.id)})" for node in nodes)
