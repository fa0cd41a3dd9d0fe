"""Items of news, the prompt by which a model reads one, and the facts extracted from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, model_validator

from kgot_lab.arguments import check_fields, is_plain_text, parse_json
from kgot_lab.domains.investment.versions import EdgeKey
from kgot_lab.domains.investment.view import MAX_ID_LENGTH
from kgot_lab.errors import BadInput, describe_value, require
from kgot_lab.graph.validation import EdgeType, Vocabulary
from kgot_lab.io.files import os_errors_as, read_regular_file, utf8_text
from kgot_lab.io.times import to_micros
from kgot_lab.kgos.schemas.check import parse_time
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT_WITH_COMPANIES
from kgot_lab.llm.reply_forms import explain_json_error
from kgot_lab.llm.structured import compact_schema
from kgot_lab.text.cleaning import FENCES, estimate_tokens, fence_text, replace_surrogates, truncate_to_tokens
from kgot_lab.types import Edge, Json, Message, Node, Prompt

_MAX_TOKENS = 3000  # of an item that are shown to a model


@dataclass(frozen=True)
class NewsItem:
    """An item of news: a permanent id, its text, its source, and when it was published.

    Raises BadInput if it is invalid.
    """

    id: str
    headline: str
    published_at: datetime
    text: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.id.strip() or len(self.id) > MAX_ID_LENGTH or not is_plain_text(self.id):
            raise BadInput(f"an item of news has an id of at most {MAX_ID_LENGTH} characters, without a NUL")
        if not self.headline.strip():
            raise BadInput("an item of news has a headline; give it one")
        to_micros(self.published_at, "the time an item was published")

    @property
    def shown(self) -> str:
        """What a model is shown: the headline, then the text, up to a maximal length."""
        return truncate_to_tokens(self._full_text, _MAX_TOKENS)

    @property
    def tokens_left_out(self) -> int:
        """The approximate number of tokens at its end that a model is not shown."""
        return estimate_tokens(self._full_text) - estimate_tokens(self.shown)

    @property
    def _full_text(self) -> str:
        return f"{self.headline}\n\n{self.text}".strip()

    def to_json(self) -> dict[str, Json]:
        """Return the item as the JSON of a line in a file."""
        return {**vars(self), "published_at": self.published_at.isoformat()}


class FeedResult(NamedTuple):
    """What a feed gave: items, and why others are none."""

    items: tuple[NewsItem, ...]
    refused: tuple[str, ...] = ()


# all items, or the latest: those returned before are skipped
Feed = Callable[[], FeedResult]


def news_item_from_json(data: Mapping[str, Json]) -> NewsItem:
    """Parse an item of news from JSON.

    Raises BadInput if it is invalid, for example without a time or its time zone.
    """
    require(data, Mapping, "an item of news is id, headline, text, source and published_at")
    if unknown := sorted(data.keys() - {"id", "headline", "text", "source", "published_at"}):
        problem = f"an item of news has no field {unknown[0]!r:.60}"
        raise BadInput(f"{problem}: it has id, headline, text, source and published_at")
    time = parse_time(data.get("published_at"))
    if time is None:
        advice = "write a time with its zone, such as 2026-02-05T14:00:00+00:00"
        raise BadInput(f"published_at is {describe_value(data.get('published_at'))}: {advice}")
    texts = {name: replace_surrogates(data.get(name, "")) for name in ("id", "headline", "text", "source")}
    return NewsItem(**texts, published_at=time)


def read_news_file(path: Path | str) -> FeedResult:
    """Read items of news from a JSON Lines file, and report invalid lines.

    An incomplete last line is ignored, because it may still be being written. Raises BadInput if the file
    cannot be read.
    """
    with os_errors_as(f"the news in {path} cannot be read"):
        lines = utf8_text(read_regular_file(path), path).split("\n")
    items, refused = list[NewsItem](), list[str]()
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                items.append(news_item_from_json(parse_json(line)))
        except (ValueError, RecursionError) as error:
            if number < len(lines):
                refused.append(f"line {number} of {path} is not JSON ({explain_json_error(error)})")
        except BadInput as error:
            refused.append(f"line {number} of {path}: {error}")
    return FeedResult(tuple(items), tuple(refused))


# What was read in an item of news: nodes and edges for the graph, and what was refused, with the reason.


@dataclass(frozen=True)
class NewsFacts:
    """The validated facts of an item.

    `refused` has a line for each statement of the model that was not accepted.
    """

    item: str
    nodes: tuple[Node, ...]  # the item's own node first
    edges: tuple[Edge, ...] = ()
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    # by id: the expiry that the item states, as ISO 8601
    expires: Mapping[str, str] = field(default_factory=dict, hash=False)
    # the ids of what the item withdraws: nodes, and edges by source, type and target
    ends: tuple[str | EdgeKey, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the facts as stored in the journal."""
        nodes = [[node.id, list(node.labels), dict(node.properties)] for node in self.nodes]
        edges = [[edge.source, edge.type, edge.target, dict(edge.properties)] for edge in self.edges]
        return {**vars(self), "nodes": nodes, "edges": edges}


def facts_from_json(data: Mapping[str, Json]) -> NewsFacts:
    """Parse facts from the journal."""
    return NewsFacts(
        data["item"],
        tuple(Node(id, tuple(labels), properties) for id, labels, properties in data["nodes"]),
        tuple(Edge(*each) for each in data["edges"]),
        tuple(data["refused"]),
        tuple(data["warnings"]),
        data["expires"],
        tuple(end if isinstance(end, str) else (end[0], end[1], end[2]) for end in data["ends"]),
    )


# The prompt that asks a model what an item of news states, and the schema of its reply. It has no account
# data.

# nodes dated by the item; a thing is of another type
ITEM_NODE_TYPES = ("News", "MarketEvent", "Insight")
ITEM_EDGE_TYPES = ("mentions", "about", "derived_from")  # edges created by the structure of a reply


def _one_of(values: Iterable[str]) -> Any:
    """Return a text type whose schema lists the values.

    Other values are accepted too, so that each can be reported separately.
    """
    return Annotated[str, Field(json_schema_extra={"enum": list(values)})]


_THING_TYPES = [t.name for t in INVESTMENT_WITH_COMPANIES.node_types if t.name not in ITEM_NODE_TYPES]
_LINK_TYPES = [type.name for type in INVESTMENT_WITH_COMPANIES.edge_types if type.name not in ITEM_EDGE_TYPES]


class _Stated(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {key: each for key, each in value.items() if each is not None}


class StatedThing(_Stated):
    """A thing as a model names it, with its symbol or ticker where the item gives one."""

    type: _one_of(_THING_TYPES)  # type: ignore[valid-type]
    name: str
    symbol: str = ""


class StatedEvent(_Stated):
    """An event as a model tells it, with the names of what it bears upon and of the institution that decided it."""

    type: str
    summary: str
    affects: list[str]
    issuer: str = ""


class StatedLink(_Stated):
    """An edge between two things, by their names."""

    source: str
    type: _one_of(_LINK_TYPES)  # type: ignore[valid-type]
    target: str


class StatedInsight(_Stated):
    """An insight as a model derives it: what it is about, the numbers of the events it rests on, the first being 1, and who gave it, when.

    In place of a name `about` may have the item's words for an event of before, and `earlier` has them for those it rests on. `date` is
    when it was given, where that is not the day of the item, and `until` when it ends, where the item says so.
    """

    type: _one_of(("signal", "observation", "pattern"))  # type: ignore[valid-type]
    summary: str
    action: _one_of(("buy", "sell", "hold", "")) = ""  # type: ignore[valid-type]
    strength: float | None = Field(None, allow_inf_nan=False)
    about: list[str]
    because: list[int] = []
    earlier: list[str] = []
    said_by: str = ""
    date: str = ""
    until: str = ""


class StatedCall(_Stated):
    """A call of somebody, which an item takes back."""

    said_by: str
    action: str
    about: list[str]


class StatedNews(_Stated):
    """All that a model reads in an item; `untrue` has the item's words for what it says did not happen, `ended` links that are over."""

    sentiment: _one_of(("positive", "negative", "neutral")) = ""  # type: ignore[valid-type]
    things: list[StatedThing]
    events: list[StatedEvent] = []
    links: list[StatedLink] = []
    insights: list[StatedInsight] = []
    withdrawn: list[StatedCall] = []
    untrue: list[str] = []
    ended: list[StatedLink] = []


def news_prompt(item: NewsItem, vocabulary: Vocabulary) -> Prompt:
    """Build the prompt that asks what an item states, in the types of a vocabulary."""
    date = item.published_at.date().isoformat()
    fenced_item = fence_text(item.shown, f"news of {item.source or 'a source without a name'}, {date}")
    question = f"{fenced_item}\n{FENCES}\n\nWhat does it state?\n{_REPLY_FORMAT}"
    messages = (Message("system", _system(vocabulary)), Message("user", question))
    return Prompt(messages, compact_schema(StatedNews), max_tokens=1500)


def _system(vocabulary: Vocabulary) -> str:
    things = [f"{t.name} ({t.meaning})" for t in vocabulary.node_types if t.name not in ITEM_NODE_TYPES]
    links = [f"{t.name} ({_format_ends(t)})" for t in vocabulary.edge_types if t.name not in ITEM_EDGE_TYPES]
    return (
        "You note what an item of financial news states, for a graph. things: what it names, each with its type, its name as the item "
        f"writes it, and its symbol or ticker if the item gives one; the types are {', '.join(things)}. events: what happened, each with "
        "a type in one or two words such as earnings or rate_decision, a summary of one sentence, the names of the things it affects, and "
        f"as issuer the institution that decided it. links between two things, by their names: {', '.join(links)}. insights: what "
        "follows for an investor, with the names it is about and the numbers of the events it rests on; an event of before this item, "
        "which it is about or rests on, stands in about or in earlier, in the words of the item, such as the fire in its warehouse; a "
        "signal has an action and a strength from 0 to 1, an observation or a pattern has none; said_by names who gives it, date when it "
        "was given if that was before the item, until when it ends if the item says so, as 2026-03-10T18:00:00+00:00. withdrawn: calls "
        "that the item says were withdrawn or wrong. untrue: what it says did not happen or was reported wrongly, in its words. ended: "
        "links that it says are over. Note nothing that the item does not state, and no insight unless the item gives the reason for it; "
        "a list may be empty."
    )


def _format_ends(edge: EdgeType) -> str:
    ends = [f"{end.source} to {end.target}" for end in edge.ends if end.source not in ITEM_NODE_TYPES]
    return ", ".join(ends)


_REPLY_FORMAT = (
    'Reply as JSON: {"sentiment": "positive", "things": [{"type": "Company", "name": "...", "symbol": "..."}], '
    '"events": [{"type": "earnings", "summary": "...", "affects": ["..."], "issuer": ""}], '
    '"links": [{"source": "...", "type": "in_sector", "target": "..."}], '
    '"insights": [{"type": "signal", "summary": "...", "action": "buy", "strength": 0.7, "about": ["..."], "because": [1], '
    '"earlier": [], "said_by": "...", "date": "", "until": ""}], "withdrawn": [], "untrue": [], "ended": []}'
)
