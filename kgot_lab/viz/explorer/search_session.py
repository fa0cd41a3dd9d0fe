"""What a retrieval explorer works on: lanes, documents, questions and systems, and everything that was
searched before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import Qrels
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Json, Query, Ranking
from kgot_lab.viz.explorer.fusion_weights import (
    LETTERS,
    Lanes,
    Mix,
    ScorePart,
    Searched,
    mixed,
    path_to,
    shares,
)
from kgot_lab.viz.explorer.hits import (
    LANE_COLOURS,
    DocumentShelf,
    Gold,
    Shown,
    format_gold,
    lane_sheet,
    moves_between,
    shown_hits,
)
from kgot_lab.viz.live import describe_error
from kgot_lab.viz.static.markup import Markup
from kgot_lab.viz.static.pipeline import pipeline

# a stage, or what builds one, as evaluation.systems.systems gives them
Systems = Mapping[str, Stage | Callable[[], Stage]]
Why = tuple[tuple[ScorePart, ...], str]  # the parts of a score, and a path
_Name = TypeVar("_Name", bound=Hashable)
_Value = TypeVar("_Value")

REMEMBERED = 20  # questions, and rankings of systems, that are not searched again
NO_QUESTION = "The question is blank: type one, or choose one of the list."
NOT_THE_SLIDERS = "Both sides are systems with weights of their own: of the sliders only k changes them."
NOTHING_FOUND = "No lane found anything for this question: try other words."


@dataclass(frozen=True)
class Side:
    """A pipeline and what it found; `why` tells how a hit came to its score and its place."""

    title: str
    stage: Stage
    ranking: Ranking
    why: Callable[[str], Why] = lambda id: ((), "")


class Searches:
    """Lanes, documents, questions with what is relevant, and systems: shared by all explorers that were made
    of one.
    """

    def __init__(
        self, lanes: Lanes, shelf: DocumentShelf, queries: tuple[Query, ...], qrels: Qrels, systems: Systems
    ) -> None:
        self.lanes, self.shelf, self.queries, self.systems = lanes, shelf, queries, dict(systems)
        self._qrels = qrels
        self._known = {_plain(query.text): query for query in reversed(queries)}
        self._searched: dict[Query, Searched] = {}
        self._found: dict[tuple[str, Query], Ranking] = {}

    def query(self, text: str) -> Query:
        """The query of the list with this text, or a new one."""
        return self._known.get(_plain(text)) or Query(text)

    def gold(self, query: Query) -> Gold:
        """What is relevant to a query."""
        return self._qrels.get(query.id, {}) if query.id else {}

    def searched(self, query: Query) -> Searched:
        """What each lane found for a query; searched once."""
        if query not in self._searched:
            _remember(self._searched, query, Searched(query, self.lanes))
        return self._searched[query]

    def working(self, query: Query) -> dict[str, Stage]:
        """The lanes that can search for a query."""
        failed = self.searched(query).failed if query.text.strip() else {}
        return {name: stage for name, stage in self.lanes.available.items() if name not in failed}

    def look(self, query: Query, mix: Mix) -> tuple[Side, list[str]]:
        """What a mix finds for a query, and what there is to say about it; a mix that makes no sense finds
        nothing.
        """
        working, nothing = self.working(query), Ranking(query, ())
        try:
            counted = shares(working, mix)
        except BadInput as error:
            return Side("", Stage("no lane", lambda ranking: nothing), nothing), [str(error)]
        if not query.text.strip():
            return Side("", mixed(working, mix), nothing), [NO_QUESTION]
        searched = self.searched(query)
        ranking = searched.joined(counted)
        side = Side(
            "",
            mixed(working, mix),
            ranking,
            lambda id: (searched.parts(id, counted), searched.path(id, counted)),
        )
        return side, self._notes(searched, counted, ranking, mix)

    def _notes(
        self, searched: Searched, counted: Mapping[str, float], ranking: Ranking, mix: Mix
    ) -> list[str]:
        notes = [f"The {name} lane could not search: {reason}" for name, reason in searched.failed.items()]
        if not ranking.hits:
            return [*notes, NOTHING_FOUND]
        empty = [name for name in counted if not searched.found[name].hits]
        notes += [
            f"The {name} lane found nothing for this question, so nobody has the {counted[name]:.2f} it counts."
            for name in empty
        ]
        if len(ranking.hits) < mix.k:
            all_of = (
                "that is every document"
                if len(ranking.hits) == len(self.shelf.documents)
                else "no more were found"
            )
            count = "is 1 hit" if len(ranking.hits) == 1 else f"are {len(ranking.hits)} hits"
            notes.append(f"k is {mix.k}, and there {count}: {all_of}.")
        return notes

    def hits(self, side: Side, k: int, before: Ranking | None = None) -> list[Shown]:
        """The first k hits of a side."""
        return shown_hits(
            side.ranking, k, self.shelf, self.gold(side.ranking.query), why=side.why, before=before
        )

    def gold_summary(self, side: Side, k: int) -> str:
        """What a side found of the gold, in words."""
        return format_gold(side.ranking, k, self.gold(side.ranking.query), self.shelf)

    # --- what a browser is told ---

    def format_retriever(self, name: str) -> dict[str, Json]:
        """A lane, and why it cannot be used where it cannot."""
        stage = self.lanes.available.get(name)
        missing = "" if stage else f"There is no {name} lane here: its weight goes to the others."
        return {
            "name": name,
            "letter": LETTERS[name],
            "stage": stage.name if stage else "",
            "missing": missing,
        }

    def answer(self, query: Query, mix: Mix, wish: Mapping[str, Json]) -> dict[str, Json]:
        """What is shown for a question and a mix; raises BadInput for a wish that makes no sense."""
        side, notes = self.look(query, mix)
        sides = self._sides(query, mix, wish)
        if sides and all(
            isinstance(wish.get(which), Mapping) and "system" in wish[which] for which in ("a", "b")
        ):
            notes = [NOT_THE_SLIDERS]
        before = self._before(query, wish.get("before"))
        return {
            "told": self.gold_summary(side, mix.k) if side.ranking.hits else "",
            "notes": notes,
            "lanes": self._counts(query, mix),
            "hits": [] if sides else [hit.to_json for hit in self.hits(side, mix.k, before)],
            "pipeline": self._drawn(side.stage),
            "stage": side.stage.name,
            "sides": sides,
            "sheet": self._sheet(query) if wish.get("sheet") else None,
        }

    def _sheet(self, query: Query) -> dict[str, Json] | None:
        """What the browser needs to rank for itself while a weight moves; None where it had better ask."""
        return lane_sheet(self.searched(query), self.shelf, self.gold(query)) if query.text.strip() else None

    def _before(self, query: Query, told: Json) -> Ranking | None:
        ranking = self.look(query, Mix.of(told))[0].ranking if isinstance(told, Mapping) else None
        return ranking if ranking and ranking.hits else None

    def _counts(self, query: Query, mix: Mix) -> dict[str, Json]:
        """What each lane counts, and how many hits it has."""
        try:
            counted = shares(self.working(query), mix)
        except BadInput:
            counted = {}
        found = self.searched(query).found if query.text.strip() else {}
        many = {name: len(ranking.hits) for name, ranking in found.items()}
        return {
            name: {"share": counted.get(name, 0.0), "found": many.get(name)} for name in self.lanes.available
        }

    def _drawn(self, stage: Stage) -> Markup:
        return pipeline(
            stage, colours={lane.name: LANE_COLOURS[name] for name, lane in self.lanes.available.items()}
        ).svg

    # --- two systems side by side ---

    def _sides(self, query: Query, mix: Mix, wish: Mapping[str, Json]) -> list[Json]:
        """Two systems and how their hits differ, or nothing where none is to be compared."""
        if not wish.get("a") or not query.text.strip():
            return []
        first, second = (self._side(query, mix, wish.get(which)) for which in ("a", "b"))
        return [
            self._format_side(first, second, mix.k, is_first=True),
            self._format_side(second, first, mix.k, is_first=False),
        ]

    def _side(self, query: Query, mix: Mix, wanted: Json) -> Side:
        match wanted:
            case {"system": str(name)}:
                return self._system_side(query, name)
            case {"weights": _}:
                title, chosen = "Kept weights", replace(Mix.of(wanted), k=mix.k)
            case _:
                title, chosen = "The sliders", mix
        side, notes = self.look(query, chosen)
        return replace(side, title=title if side.ranking.hits else f"{title}. {notes[0]}")

    def _system_side(self, query: Query, name: str) -> Side:
        if name not in self.systems:
            raise UnknownName("system", name, self.systems)
        try:
            stage = self._built(name)
            if (name, query) not in self._found:
                _remember(self._found, (name, query), stage.search(query))
        except Exception as error:  # a system may be anybody's code, and in a browser nobody sees a traceback
            raise BadInput(f"The system {name!r} could not search: {describe_error(error)}") from error
        ranking = self._found[name, query]
        return Side(name, stage, ranking, lambda id: ((), path_to(id, ranking)))

    def _built(self, name: str) -> Stage:
        made = self.systems[name]
        stage = made if isinstance(made, Stage) else made()
        self.systems[name] = stage
        return stage

    def _format_side(self, side: Side, other: Side, k: int, *, is_first: bool) -> dict[str, Json]:
        hits = self.hits(side, k)
        moves = moves_between(hits, k, other.ranking, is_first=is_first)
        return {
            "title": side.title,
            "stage": side.stage.name,
            "told": self.gold_summary(side, k),
            "hits": [replace(hit, moved=move).to_json for hit, move in zip(hits, moves, strict=True)],
            "pipeline": self._drawn(side.stage),
        }


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _remember(some: dict[_Name, _Value], name: _Name, value: _Value) -> None:
    """Keep a value, and forget the oldest where there are many."""
    while len(some) >= REMEMBERED:
        del some[next(iter(some))]
    some[name] = value
