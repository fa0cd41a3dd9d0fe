"""Weights of the retrieval explorer: four retrievers, each run once per question and fused repeatedly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache

from kgot_lab.arguments import CheckedRecord, bounded, check_arguments, check_fields
from kgot_lab.errors import BadInput, require_known
from kgot_lab.retrieval.fusion import (
    SCALES,
    WEIGHT_PRESETS,
    Weights,
    normalised_weights,
    ranking_scores,
    weighted,
)
from kgot_lab.retrieval.stage import Stage, fixed_stage
from kgot_lab.types import Json, Query, Ranking
from kgot_lab.viz.live import describe_error

LETTERS: Mapping[str, str] = {"embedding": "α", "text": "β", "graph": "γ", "intent": "δ"}
_SCALE = "maximum"  # the scale of KG-OS, as in presets.hybrid
MAX_HITS = 50  # maximum number of hits


@check_arguments
@dataclass(frozen=True)
class Retrievers:
    """The retrievers of an explorer: dense, lexical, graph and intent. At least one is required."""

    embedding: Stage | None = None
    text: Stage | None = None
    graph: Stage | None = None
    intent: Stage | None = None

    def __post_init__(self) -> None:
        if not self.available:
            raise BadInput("an explorer needs at least one retriever, as in Retrievers(text=bm25(documents))")
        check_fields(self)

    @property
    def available(self) -> dict[str, Stage]:
        """The available retrievers, by name."""
        stages = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: stage for name, stage in stages.items() if stage is not None}


@check_arguments
def as_retrievers(retrievers: Retrievers | Mapping[str, Stage] | Stage) -> Retrievers:
    """Convert a stage or a mapping to Retrievers.

    A single stage is taken as lexical retrieval. Raises UnknownName if a name is unknown, and BadInput for
    other types.
    """
    if isinstance(retrievers, Stage):
        return Retrievers(text=retrievers)
    if isinstance(retrievers, Mapping):
        require_known("retriever", LETTERS, *retrievers)
        return Retrievers(**retrievers)
    return retrievers


@dataclass(frozen=True)
class Mix(CheckedRecord):
    """The slider positions: a weight per retriever, the retrievers switched off, and the number of hits."""

    weights: Weights = WEIGHT_PRESETS["default"]
    off: frozenset[str] = frozenset()
    k: int = bounded(10, 1, MAX_HITS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(weight > 1 for weight in asdict(self.weights).values()):
            raise BadInput(f"the weights of an explorer go from 0 to 1, not {self.weights}")
        require_known("retriever", LETTERS, *sorted(self.off))

    @staticmethod
    def of(message: Mapping[str, Json]) -> Mix:
        """Parse a mix from a browser message.

        Raises BadInput if the message is invalid.
        """
        try:
            weights = Weights(**{name: float(weight) for name, weight in message["weights"].items()})
            return Mix(weights, frozenset(map(str, message["off"])), message["k"])
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


def effective_weights(retrievers: Mapping[str, Stage], mix: Mix) -> dict[str, float]:
    """Return the effective weight of each retriever, with sum 1.

    Only retrievers that are available, switched on and above 0 have a share. The weights of the others are
    distributed in proportion, and weights that do not sum to 1 are divided by their sum. Weights that do are
    left unchanged, so a preset equals that of presets.hybrid to the last bit. Raises BadInput if no retriever
    has a weight.
    """
    weights: dict[str, float] = asdict(mix.weights)
    active = [name for name in retrievers if name not in mix.off and weights[name] > 0]
    if not active:
        raise BadInput(_no_weight_message(retrievers, mix))
    normalized: dict[str, float] = asdict(normalised_weights(mix.weights, *active))
    return {name: normalized[name] for name in active}


def mix_pipeline(retrievers: Mapping[str, Stage], mix: Mix) -> Stage:
    """Build the pipeline of a mix: retrievers fused by `weighted` with the scale of KG-OS, truncated to k."""
    return _fuse(retrievers, effective_weights(retrievers, mix)) % mix.k


def _fuse(retrievers: Mapping[str, Stage], weights: Mapping[str, float]) -> Stage:
    return weighted(*((share, retrievers[name]) for name, share in weights.items()), scale=_SCALE)


def _no_weight_message(retrievers: Mapping[str, Stage], mix: Mix) -> str:
    if not retrievers:
        return "No retriever could search: see what each of them said."
    if set(retrievers) <= mix.off:
        return "All retrievers are switched off: switch one on."
    active = [f"{LETTERS[name]} {name}" for name in retrievers if name not in mix.off]
    return f"All weights are 0: raise a slider ({', '.join(active)})."


@dataclass(frozen=True)
class ScorePart:
    """What a retriever adds to the score of a hit: share * scaled.

    Its own score and rank are 0 if it did not find the hit.
    """

    retriever: str
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


class SearchResults:
    """What each retriever found for one question.

    A retriever that fails, or whose results cannot be fused, is left out with its reason.
    """

    def __init__(self, query: Query, retrievers: Retrievers) -> None:
        self.query = query
        self.found: dict[str, Ranking] = {}
        self.failed: dict[str, str] = {}
        self.stages: dict[str, Stage] = {}
        self._columns: dict[str, tuple[Mapping[str, int], list[float], list[float]]] = {}
        self._joined = lru_cache(8)(lambda weights: _fuse(self.stages, dict(weights)).search(query))
        for name, stage in retrievers.available.items():
            self._search(name, stage)

    def _search(self, name: str, stage: Stage) -> None:
        try:
            found = stage.search(self.query)
            weighted((1.0, fixed_stage(stage.name, found))).search(self.query)
        except Exception as error:  # a retriever may be user code, and a browser shows no traceback
            self.failed[name] = describe_error(error)
            return
        self.found[name], self.stages[name] = found, fixed_stage(stage.name, found)
        scores = ranking_scores(found)
        ranks = {id: rank for rank, id in enumerate(found.ids, start=1)}
        self._columns[name] = ranks, SCALES[_SCALE](scores).tolist(), scores.tolist()

    def joined(self, weights: Mapping[str, float]) -> Ranking:
        """Return the ranking that `weighted` makes with these shares.

        The latest few are cached.
        """
        return self._joined(tuple(weights.items()))

    def parts(self, id: str, weights: Mapping[str, float]) -> tuple[ScorePart, ...]:
        """Return what each retriever adds to the score of a hit."""
        return tuple(self._part(name, share, id) for name, share in weights.items())

    def _part(self, name: str, share: float, id: str) -> ScorePart:
        ranks, scaled, scores = self._columns[name]
        if not (rank := ranks.get(id, 0)):
            return ScorePart(name, share)
        return ScorePart(name, share, scaled[rank - 1], scores[rank - 1], rank)

    def scales(self, name: str) -> tuple[list[float], list[float]]:
        """Return the scores of a retriever's hits, best first: as scaled for fusion, and raw."""
        return self._columns[name][1:]

    def path(self, id: str, weights: Mapping[str, float]) -> str:
        """Return the path by which a graph retriever reached a hit, or ""."""
        return next((path for name in weights if (path := find_path(id, self.found[name]))), "")


def find_path(id: str, ranking: Ranking) -> str:
    """Return the path by which a ranking, or one it was fused from, reached a document, or ""."""
    if path := ranking.paths.get(id, ""):
        return path
    return next((path for _, part in ranking.inputs if (path := find_path(id, part))), "")
