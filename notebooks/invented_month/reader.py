"""A simulated reader of news: a model that answers from gold what an item says, with errors at rates that are
set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta

from kgot_lab.domains.investment.monitor.news import NewsItem
from kgot_lab.errors import BadInput, LLMError, require_count
from kgot_lab.llm.presets import FREE
from kgot_lab.types import Prompt, Reply, Usage

from .month import GoldMonth
from .said import SaidEdge, SaidFacts, SaidThing
from .stated import stated_reply

_ACTIONS = ("buy", "sell", "hold")
_DAYS = (-31, -7, 7, 31)  # by which a date is misread
_STANDING = ("Asset", "Company", "Sector", "AssetClass", "Institution")
_OF_CHANCE = 0.7  # the strength of a call that nobody made


def drawn_by_hash(*where: str) -> float:
    """Draw a number from 0 to 1, evenly, by the hash of some texts."""
    return int.from_bytes(hashlib.sha256("\0".join(where).encode("utf-8", "replace")).digest()[:7]) / 2**56


@dataclass(frozen=True)
class ReadingErrors:
    """How often a simulated reader errs, each rate from 0 to 1, and the seed that its errors are drawn from;
    raises BadInput.

    missed: an edge, an end of a call, or what is taken back, is not written. invented: an item is given a
    call that nobody made, on something it mentions or, where it mentions nothing, on anything. wrong_type: a
    call becomes an observation; an observation, a pattern or an event becomes a call. wrong_name: an edge
    joins another thing of the same type, if there is one with the same first characters or ticker, that one.
    wrong_date: the date of what the item says, or when it ends, is a week or a month off.
    """

    missed: float = 0.0
    invented: float = 0.0
    wrong_type: float = 0.0
    wrong_name: float = 0.0
    wrong_date: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        require_count(self.seed, 0, "the seed of errors")
        for name in READING_ERRORS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise BadInput(f"the rate of errors {name!r} must be between 0 and 1, not {value!r}")

    def __str__(self) -> str:
        return ",".join(f"{each.name}={getattr(self, each.name):g}" for each in fields(self))


READING_ERRORS = tuple(each.name for each in fields(ReadingErrors) if each.name != "seed")


class SimulatedReader:
    """A model that knows the gold of a month, finds in a prompt which item it shows, and errs at set rates.

    It depends on nothing but the item's text: the same item has the same reply however it is asked, but for
    the prompt's seed where its temperature is above 0. `spelled` makes the reply of facts and item. Raises
    LLMError for a prompt that shows no item, or several.
    """

    price = FREE

    def __init__(
        self,
        month: GoldMonth,
        errors: ReadingErrors | None = None,
        *,
        spelled: Callable[[SaidFacts, NewsItem], str] = stated_reply,
    ) -> None:
        self.errors = errors or ReadingErrors()
        self.name = f"simulated:{self.errors}"
        self._month, self._spelled = month, spelled
        self._known = {
            ref: thing
            for facts in (month.standing, *month.facts.values())
            for ref, thing in facts.things.items()
        }
        self._texts = {item.id: " ".join(item.text.split()) for item in month.items}

    def __repr__(self) -> str:
        return f"<{self.name}: knows {len(self._texts)} items>"

    def __call__(self, prompt: Prompt) -> Reply:
        shown = " ".join(word for message in prompt.messages for word in message.text.split())
        found = [item for item in self._month.items if self._texts[item.id] in shown]
        if len(found) != 1:
            raise LLMError(
                f"a simulated reader is shown one item of its month at a time, and this prompt shows {len(found)}"
            )
        text = self._spelled(
            self.read(found[0], str(prompt.seed) if prompt.temperature > 0 else ""), found[0]
        )
        return Reply(text, Usage(len(shown.split()), len(text.split())))

    def read(self, item: NewsItem, draw: str = "") -> SaidFacts:
        """The facts of an item as they are read, with what errors are drawn."""
        facts = self._month.facts[item.id]
        for err in (self._miss, self._misname, self._mistype, self._misdate, self._invent):
            facts = err(facts, item, draw)
        return facts

    # --- one kind of error each ---

    def _miss(self, facts: SaidFacts, item: NewsItem, draw: str) -> SaidFacts:
        def kept(what: object) -> bool:
            return not self._errs("missed", item.id, str(what), draw)

        expires = {ref: time for ref, time in facts.expires.items() if kept(("expires", ref))}
        return replace(
            facts,
            edges=tuple(filter(kept, facts.edges)),
            expires=expires,
            ends=tuple(filter(kept, facts.ends)),
        )

    def _misname(self, facts: SaidFacts, item: NewsItem, draw: str) -> SaidFacts:
        edges, more = [], {}
        for edge in facts.edges:
            if edge.target in self._month.standing.things and self._errs(
                "wrong_name", item.id, str(edge), draw
            ):
                other = self._other(edge, item.id, draw)
                more[other], edge = self._known[other], edge._replace(target=other)
            edges.append(edge)
        return replace(facts, edges=tuple(edges), things={**facts.things, **more})

    def _mistype(self, facts: SaidFacts, item: NewsItem, draw: str) -> SaidFacts:
        wrong = {
            ref
            for ref in facts.said
            if _dated(facts.things[ref]) and self._errs("wrong_type", item.id, ref, draw)
        }
        if not wrong:
            return facts
        events = {ref for ref in wrong if facts.things[ref]["is"] == "MarketEvent"}
        things = {
            ref: self._retyped(thing, item, ref, draw) if ref in wrong else thing
            for ref, thing in facts.things.items()
        }
        edges = tuple(
            SaidEdge(edge.source, "about", edge.target) if edge.source in events else edge
            for edge in facts.edges
        )
        return replace(
            facts,
            things=things,
            edges=tuple(edge for edge in edges if edge.type != "derived_from" or edge.target not in events),
        )

    def _misdate(self, facts: SaidFacts, item: NewsItem, draw: str) -> SaidFacts:
        def shifted(time: str, *where: str) -> str:
            if not self._errs("wrong_date", item.id, *where, draw):
                return time
            days = _DAYS[int(len(_DAYS) * self._drawn("days", item.id, *where, draw))]
            said = (datetime.fromisoformat(time) + timedelta(days=days)).isoformat()
            return said[: len(time)]

        things = dict(facts.things)
        for ref in facts.said:
            if name := _dated(things[ref]):
                things[ref] = {**things[ref], name: shifted(str(things[ref][name]), ref)}
        return replace(
            facts,
            things=things,
            expires={ref: shifted(time, "expires", ref) for ref, time in facts.expires.items()},
        )

    def _invent(self, facts: SaidFacts, item: NewsItem, draw: str) -> SaidFacts:
        if not self._errs("invented", item.id, draw):
            return facts
        named = [ref for ref in facts.mentions if facts.things[ref]["is"] in _STANDING] or sorted(
            self._month.standing.things
        )
        about = named[int(len(named) * self._drawn("about", item.id, draw))]
        ref = f"{item.id}/invented"
        call = self._call({"summary": f"A call that nobody made, in {item.headline}"}, item, ref, draw)
        things = {**facts.things, ref: call, about: self._known[about]}
        return replace(
            facts, things=things, said=(*facts.said, ref), edges=(*facts.edges, SaidEdge(ref, "about", about))
        )

    # --- inside ---

    def _other(self, edge: SaidEdge, *where: str) -> str:
        """Another thing of the same type as an edge's target: one that looks like it, or else any."""
        thing = self._month.standing.things[edge.target]
        others = {
            ref: other
            for ref, other in self._month.standing.things.items()
            if other["is"] == thing["is"] and ref not in (edge.source, edge.target)
        }
        alike = sorted(ref for ref, other in others.items() if _letters(other) == _letters(thing)) or sorted(
            others
        )
        return alike[int(len(alike) * self._drawn("name", *map(str, edge[:3]), *where))]

    def _retyped(self, thing: SaidThing, item: NewsItem, ref: str, draw: str) -> SaidThing:
        if thing.get("type") == "signal":
            return {
                **{name: value for name, value in thing.items() if name != "action"},
                "type": "observation",
            }
        return self._call({"summary": thing["summary"]}, item, ref, draw)

    def _call(self, thing: SaidThing, item: NewsItem, ref: str, draw: str) -> SaidThing:
        action = _ACTIONS[int(len(_ACTIONS) * self._drawn("action", item.id, ref, draw))]
        at = item.published_at.isoformat()
        return {
            "is": "Insight",
            "type": "signal",
            "action": action,
            "strength": _OF_CHANCE,
            "generated_at": at,
            **thing,
        }

    def _errs(self, rate: str, *where: str) -> bool:
        chance = getattr(self.errors, rate)
        return bool(chance) and self._drawn(rate, *where) < chance

    def _drawn(self, *where: str) -> float:
        return drawn_by_hash(str(self.errors.seed), *where)


def _dated(thing: SaidThing) -> str:
    """The property that holds the date of a thing; "" where it has none."""
    return next((name for name in ("date", "generated_at") if name in thing), "")


def _letters(thing: Mapping[str, object]) -> str:
    """What of a name is easily taken for another: the ticker, or the symbol as far as the first sign."""
    symbol = str(thing.get("ticker") or thing.get("symbol") or thing["name"])
    return symbol.split(".")[0].split("-")[0]
