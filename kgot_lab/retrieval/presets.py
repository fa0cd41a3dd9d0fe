"""The KG-OS weights by name: how much meaning, words, graph and intent count in a fusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.retrieval.fusion import weighted
from kgot_lab.retrieval.stage import Stage


@dataclass(frozen=True)
class Weights:
    """What the four lanes of KG-OS weigh; they add up to 1."""

    embedding: float
    text: float
    graph: float
    intent: float


# The tuning table of KG-OS, section 7. "backward-compatible" is not "default" without intent, which would be .389/.444/.167 (C-O3).
WEIGHTS: Mapping[str, Weights] = {
    "default": Weights(0.35, 0.40, 0.15, 0.10),
    "goal-oriented": Weights(0.25, 0.30, 0.15, 0.30),
    "exact-term": Weights(0.10, 0.65, 0.15, 0.10),
    "exploration": Weights(0.25, 0.25, 0.40, 0.10),
    "highly-connected": Weights(0.35, 0.40, 0.25, 0.00),
    "sparse": Weights(0.45, 0.45, 0.05, 0.05),
    "backward-compatible": Weights(0.40, 0.45, 0.15, 0.00),
}


def hybrid(
    preset: str, *, embedding: Stage | None = None, text: Stage | None = None, graph: Stage | None = None, intent: Stage | None = None
) -> Stage:
    """The KG-OS score: weight of the preset times score over maximum, summed over the lanes that are given.

    The weights of the lanes that are not given go to the others in proportion; a lane that weighs nothing is not asked.
    Raises UnknownName for a preset, and BadInput when no lane with a weight is given.
    """
    if not isinstance(preset, str) or preset not in WEIGHTS:
        raise UnknownName("preset", str(preset), WEIGHTS)
    all_lanes = list(zip(astuple(WEIGHTS[preset]), (embedding, text, graph, intent), strict=True))
    lanes = [(weight, lane) for weight, lane in all_lanes if lane is not None and weight > 0]
    if not lanes:
        raise BadInput(f"hybrid({preset!r}) takes at least one lane that weighs more than 0 in {WEIGHTS[preset]}")
    missing = any(lane is None and weight > 0 for weight, lane in all_lanes)
    total = sum(weight for weight, _ in lanes) if missing else 1.0  # undivided, so that a full preset is exact to the last bit
    return weighted(*((weight / total, lane) for weight, lane in lanes), scale="maximum")
