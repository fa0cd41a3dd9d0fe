"""How a model is asked what an item of news states: the shape of its reply, and the prompt. Nothing of an
account is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator

from kgot_lab.domains.investment.monitor.news import NewsItem
from kgot_lab.graph.vocabulary import EdgeType, Vocabulary
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT_WITH_COMPANIES
from kgot_lab.llm.structured import schema_of
from kgot_lab.text.fence import FENCES, fenced
from kgot_lab.types import Message, Prompt

# nodes that are dated by the item; a thing is of another type
OF_THE_ITEM = ("News", "MarketEvent", "Insight")
BY_THE_ITEM = ("mentions", "about", "derived_from")  # edges that come of how a reply is made up


def _one_of(values: Iterable[str]) -> Any:
    """A text for which a schema lists the values; another one is read too, so that what is wrong with it can
    be told by itself.
    """
    return Annotated[str, Field(json_schema_extra={"enum": list(values)})]


class _Stated(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return (
            {key: each for key, each in value.items() if each is not None}
            if isinstance(value, Mapping)
            else value
        )


class StatedThing(_Stated):
    """A thing as a model names it, with its symbol or ticker where the item gives one."""

    type: _one_of(each.name for each in INVESTMENT_WITH_COMPANIES.node_types if each.name not in OF_THE_ITEM)  # type: ignore[valid-type]
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
    type: _one_of(each.name for each in INVESTMENT_WITH_COMPANIES.edge_types if each.name not in BY_THE_ITEM)  # type: ignore[valid-type]
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
    """Ask what an item states, in the types of a vocabulary."""
    said = fenced(
        item.shown,
        f"news of {item.source or 'a source without a name'}, {item.published_at.date().isoformat()}",
    )
    asked = f"{said}\n{FENCES}\n\nWhat does it state?\n{_FORM}"
    return Prompt(
        (Message("system", _system(vocabulary)), Message("user", asked)),
        schema_of(StatedNews),
        max_tokens=1500,
    )


def _system(vocabulary: Vocabulary) -> str:
    things = [
        f"{each.name} ({each.meaning})" for each in vocabulary.node_types if each.name not in OF_THE_ITEM
    ]
    links = [
        f"{each.name} ({_joins(each)})" for each in vocabulary.edge_types if each.name not in BY_THE_ITEM
    ]
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


def _joins(edge: EdgeType) -> str:
    ends = [f"{each.source} to {each.target}" for each in edge.ends if each.source not in OF_THE_ITEM]
    return ", ".join(ends)


_FORM = (
    'Reply as JSON: {"sentiment": "positive", "things": [{"type": "Company", "name": "...", "symbol": "..."}], '
    '"events": [{"type": "earnings", "summary": "...", "affects": ["..."], "issuer": ""}], '
    '"links": [{"source": "...", "type": "in_sector", "target": "..."}], '
    '"insights": [{"type": "signal", "summary": "...", "action": "buy", "strength": 0.7, "about": ["..."], "because": [1], '
    '"earlier": [], "said_by": "...", "date": "", "until": ""}], "withdrawn": [], "untrue": [], "ended": []}'
)
