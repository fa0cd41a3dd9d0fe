"""Weights of the retrieval explorer: four retrievers, each run once per question and fused repeatedly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from kgot_lab.errors import BadInput, UnknownName, require
from kgot_lab.retrieval.fusion import (
    SCALES,
    WEIGHT_PRESETS,
    Weights,
    normalised_weights,
    ranking_scores,
    weighted,
)
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Json, Query, Ranking
from kgot_lab.viz.live import describe_error

LETTERS: Mapping[str, str] = {"embedding": "α", "text": "β", "graph": "γ", "intent": "δ"}
_SCALE = "maximum"  # the scale of KG-OS, as in presets.hybrid
DEEPEST = 50  # maximum number of hits


@dataclass(frozen=True)
class Lanes:
    """The retrievers of an explorer: dense, lexical, graph and intent. At least one is required."""

    embedding: Stage | None = None
    text: Stage | None = None
    graph: Stage | None = None
    intent: Stage | None = None

    def __post_init__(self) -> None:
        if not self.available:
            raise BadInput("an explorer needs at least one lane, as in Lanes(text=bm25(documents))")
        for name, stage in self.available.items():
            require(stage, Stage, f"the lane {name} is a Stage, as bm25(documents) gives one")

    @property
    def available(self) -> dict[str, Stage]:
        """The available retrievers, by name."""
        stages = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: stage for name, stage in stages.items() if stage is not None}


def lanes_of(given: Lanes | Mapping[str, Stage] | Stage) -> Lanes:
    """Convert a stage or a mapping to Lanes.

    A single stage is taken as lexical retrieval. Raises UnknownName if a name is unknown, and BadInput for
    other types.
    """
    if isinstance(given, Stage):
        return Lanes(text=given)
    if isinstance(given, Mapping):
        for name in given:
            if name not in LETTERS:
                raise UnknownName("lane", str(name), LETTERS)
        return Lanes(**given)
    require(
        given,
        Lanes,
        "an explorer takes Lanes(text=stage, …), a mapping such as {'text': stage}, or one stage",
    )
    return given


@dataclass(frozen=True)
class Mix:
    """The slider positions: a weight per retriever, the retrievers switched off, and the number of hits."""

    weights: Weights = WEIGHT_PRESETS["default"]
    off: frozenset[str] = frozenset()
    k: int = 10

    def __post_init__(self) -> None:
        require(
            self.weights, Weights, "the weights of an explorer are Weights(embedding, text, graph, intent)"
        )
        if any(not (_is_number(weight) and 0 <= weight <= 1) for weight in asdict(self.weights).values()):
            raise BadInput(f"the weights of an explorer go from 0 to 1, not {self.weights}")
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not 1 <= self.k <= DEEPEST:
            raise BadInput(f"an explorer shows 1 to {DEEPEST} hits, not {self.k!r}")
        if strange := self.off - set(LETTERS):
            raise UnknownName("lane", min(strange), LETTERS)

    @staticmethod
    def of(told: Mapping[str, Json]) -> Mix:
        """Parse a mix from a browser message.

        Raises BadInput if the message is invalid.
        """
        try:
            weights = Weights(**{name: float(weight) for name, weight in told["weights"].items()})
            return Mix(weights, frozenset(map(str, told["off"])), told["k"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(f"these are no positions of sliders ({error})") from None

    @property
    def to_json(self) -> dict[str, Json]:
        """The mix as JSON."""
        return {"weights": asdict(self.weights), "off": sorted(self.off), "k": self.k}

    @property
    def preset(self) -> str:
        """The name of the preset with these weights, or ""."""
        return next((name for name, weights in WEIGHT_PRESETS.items() if weights == self.weights), "")


def weights_of(preset: str) -> Weights:
    """Return the weights of a preset.

    Raises UnknownName if there is no such preset.
    """
    if not isinstance(preset, str) or preset not in WEIGHT_PRESETS:
        raise UnknownName("preset", str(preset), WEIGHT_PRESETS)
    return WEIGHT_PRESETS[preset]


def shares(given: Mapping[str, Stage], mix: Mix) -> dict[str, float]:
    """Return the effective weight of each retriever, with sum 1.

    Only retrievers that are available, switched on and above 0 have a share. The weights of the others are
    distributed in proportion, and weights that do not sum to 1 are divided by their sum. Weights that do are
    left unchanged, so a preset equals that of presets.hybrid to the last bit. Raises BadInput if no retriever
    has a weight.
    """
    weights: dict[str, float] = asdict(mix.weights)
    counted = [name for name in given if name not in mix.off and weights[name] > 0]
    if not counted:
        raise BadInput(_why_nothing(given, mix))
    share: dict[str, float] = asdict(normalised_weights(mix.weights, *counted))
    return {name: share[name] for name in counted}


def mixed(given: Mapping[str, Stage], mix: Mix) -> Stage:
    """Build the pipeline of a mix: retrievers fused by `weighted` with the scale of KG-OS, truncated to k."""
    return _joined(given, shares(given, mix)) % mix.k


def _joined(given: Mapping[str, Stage], counted: Mapping[str, float]) -> Stage:
    return weighted(*((share, given[name]) for name, share in counted.items()), scale=_SCALE)


def _why_nothing(given: Mapping[str, Stage], mix: Mix) -> str:
    if not given:
        return "No lane could search: see what each of them said."
    if set(given) <= mix.off:
        return "All lanes are switched off: switch one on."
    on = [f"{LETTERS[name]} {name}" for name in given if name not in mix.off]
    return f"All weights are 0: raise a slider ({', '.join(on)})."


@dataclass(frozen=True)
class ScorePart:
    """What a retriever adds to the score of a hit: share * scaled.

    Its own score and rank are 0 if it did not find the hit.
    """

    lane: str
    share: float
    scaled: float = 0.0
    score: float = 0.0
    rank: int = 0

    @property
    def value(self) -> float:
        """The addend, share * scaled."""
        return self.share * self.scaled

    @property
    def numbers(self) -> str:
        """The addend and its calculation, as text."""
        if not self.rank:
            return "0 (not found)"
        return f"{self.value:.3f} = {self.share:.2f} × {self.scaled:.3f} (score {self.score:.3g}, rank {self.rank})"


class Searched:
    """What each retriever found for one question.

    A retriever that fails, or whose results cannot be fused, is left out with its reason.
    """

    def __init__(self, query: Query, lanes: Lanes) -> None:
        self.query = query
        self.found: dict[str, Ranking] = {}
        self.failed: dict[str, str] = {}
        self.stages: dict[str, Stage] = {}
        self._columns: dict[str, _Columns] = {}
        self._joined: dict[tuple[tuple[str, float], ...], Ranking] = {}
        for name, stage in lanes.available.items():
            self._search(name, stage)

    def _search(self, name: str, stage: Stage) -> None:
        try:
            found = stage.search(self.query)
            weighted((1.0, _standing(stage.name, found))).search(self.query)
        except Exception as error:  # a retriever may be user code, and a browser shows no traceback
            self.failed[name] = describe_error(error)
            return
        self.found[name], self.stages[name] = found, _standing(stage.name, found)
        self._columns[name] = _Columns.of(found)

    def joined(self, counted: Mapping[str, float]) -> Ranking:
        """Return the ranking that `weighted` makes with these shares.

        The latest few are cached.
        """
        key = tuple(counted.items())
        if key not in self._joined:
            while len(self._joined) >= 8:
                del self._joined[next(iter(self._joined))]
            self._joined[key] = _joined(self.stages, counted).search(self.query)
        return self._joined[key]

    def parts(self, id: str, counted: Mapping[str, float]) -> tuple[ScorePart, ...]:
        """Return what each retriever adds to the score of a hit."""
        return tuple(self._columns[name].part(name, share, id) for name, share in counted.items())

    def scales(self, name: str) -> tuple[list[float], list[float]]:
        """Return the scores of a retriever's hits, best first: as scaled for fusion, and raw."""
        return self._columns[name].scaled, self._columns[name].scores

    def path(self, id: str, counted: Mapping[str, float]) -> str:
        """Return the path by which a graph retriever reached a hit, or ""."""
        return next((path for name in counted if (path := path_to(id, self.found[name]))), "")


@dataclass(frozen=True)
class _Columns:
    """The hits of a retriever by id, with the scores as scaled for fusion."""

    place: Mapping[str, int]
    scores: list[float] = field(repr=False)
    scaled: list[float] = field(repr=False)

    @staticmethod
    def of(ranking: Ranking) -> _Columns:
        scores = ranking_scores(ranking)
        return _Columns(
            {id: place for place, id in enumerate(ranking.ids)},
            scores.tolist(),
            SCALES[_SCALE](scores).tolist(),
        )

    def part(self, name: str, share: float, id: str) -> ScorePart:
        if id not in self.place:
            return ScorePart(name, share)
        place = self.place[id]
        return ScorePart(name, share, self.scaled[place], self.scores[place], place + 1)


def path_to(id: str, ranking: Ranking) -> str:
    """Return the path by which a ranking, or one it was fused from, reached a document, or ""."""
    if path := ranking.paths.get(id, ""):
        return path
    return next((path for _, lane in ranking.lanes if (path := path_to(id, lane))), "")


def _standing(name: str, found: Ranking) -> Stage:
    """Wrap a finished ranking as a stage."""
    return Stage(name, lambda ranking: found)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
