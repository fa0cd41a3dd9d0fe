"""What nodes of the investment graph are called: ids that are the same whenever the same thing is written,
names, symbols.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from kgot_lab.errors import BadInput, described_value
from kgot_lab.text.cleaning import whole
from kgot_lab.types import Json, Node

_NAMED_BY = {
    "Asset": "symbol",
    "Company": "name",
    "MarketEvent": "summary",
    "News": "headline",
    "Insight": "summary",
}
_DATES = ("date", "published_at", "generated_at")
LONGEST_ID = 200  # characters: an index of PostgreSQL takes three such ids
SYMBOLS = {"Asset": "symbol", "Company": "ticker"}


def investment_node(type: str, /, *, owner: str = "", **properties: Json) -> Node:
    """A node of a type with an id made of what names it, so that who writes it again writes the same node.

    An asset is named by its symbol, what happened or was said by its words and its date, everything else by
    its name. The id of an owner's node begins with the owner.
    """
    name = properties.get(_NAMED_BY.get(type, "name"))
    if not isinstance(name, str) or not name.strip():
        raise BadInput(
            f"a node of type {type} is named by its {_NAMED_BY.get(type, 'name')}, a text, not {described_value(name)}"
        )
    key = fold(name)
    if type == "Asset":
        key = upper(name)
    elif type in ("MarketEvent", "News", "Insight"):
        said = json.dumps([type, properties.get("type"), key, [properties.get(date) for date in _DATES]])
        key = hashlib.blake2b(said.encode(), digest_size=8).hexdigest()
    # a / ends the owner in an id
    return Node(f"{owned_prefix(owner)}{type}:{key.replace('/', '|')}", (type,), properties)


def owned_prefix(owner: str) -> str:
    """How the ids of an owner's nodes begin; those of shared ones begin with no owner."""
    return f"{owner}/" if owner else ""


def shown_name(node: Node) -> str:
    """What a reader calls a node: its name, or else its symbol or its words, or else its id."""
    named_by = ("name", _NAMED_BY.get(node.labels[0], "name"))
    return next((str(node.properties[key]) for key in named_by if node.properties.get(key)), node.id)


def fold(name: str) -> str:
    """A name as it is compared: in lower case, with one space between words."""
    return " ".join(storable_text(name).split()).casefold()


def symbol_of(type: str, properties: Mapping[str, Json]) -> str:
    """The symbol of an asset or the ticker of a company, as it is compared: in capitals; '' for anything
    else.
    """
    return upper(properties.get(SYMBOLS.get(type, "")))


def upper(symbol: Json) -> str:
    """A symbol as it is compared: in capitals, without spaces around it, and no longer than an index takes;
    '' for what is none.
    """
    return storable_text(symbol).strip().upper()[:LONGEST_ID] if isinstance(symbol, str) else ""


def storable_text(text: str) -> str:
    """A text as a database can be asked for it: one that none holds becomes another that it may hold."""
    return str(whole(text)).replace("\0", " ")
