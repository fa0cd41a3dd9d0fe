"""The KG-OS weights by name: how much meaning, words, graph and intent count in a fusion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from kgot_lab.errors import BadInput, UnknownName, require_amount
from kgot_lab.retrieval.fusion import weighted
from kgot_lab.retrieval.stage import Stage


@dataclass(frozen=True)
class Weights:
    """What the four lanes of KG-OS weigh; they add up to 1."""

    embedding: float
    text: float
    graph: float
    intent: float


# The tuning table of KG-OS, section 7. "backward-compatible" is not "default" without intent, which would be
# .389/.444/.167 (C-O3).
WEIGHTS: Mapping[str, Weights] = {
    "default": Weights(0.35, 0.40, 0.15, 0.10),
    "goal-oriented": Weights(0.25, 0.30, 0.15, 0.30),
    "exact-term": Weights(0.10, 0.65, 0.15, 0.10),
    "exploration": Weights(0.25, 0.25, 0.40, 0.10),
    "highly-connected": Weights(0.35, 0.40, 0.25, 0.00),
    "sparse": Weights(0.45, 0.45, 0.05, 0.05),
    "backward-compatible": Weights(0.40, 0.45, 0.15, 0.00),
}


def lane_weights(weights: str | Weights, *lanes: str) -> Weights:
    """What some lanes weigh by a preset or by weights of one's own: the others weigh 0, and all together 1.

    Weights of one's own may add up to anything; a preset of which no lane is missing keeps its weights to the
    last bit. Raises UnknownName for a preset, and BadInput for a weight below 0, and where no lane that is
    given weighs more than 0.
    """
    if not isinstance(weights, Weights) and (not isinstance(weights, str) or weights not in WEIGHTS):
        raise UnknownName("preset", str(weights), WEIGHTS)
    all = asdict(weights if isinstance(weights, Weights) else WEIGHTS[weights])
    for name, weight in all.items():
        require_amount(weight, f"the weight of {name}")
    given = {name: weight if name in lanes else 0.0 for name, weight in all.items()}
    if not any(given.values()):
        raise BadInput(
            f"hybrid({weights!r}) takes at least one lane that weighs more than 0 in {Weights(**all)}"
        )
    # undivided where nothing is missing, so that a full preset is exact to the last bit
    total = 1.0 if given == all and math.isclose(sum(all.values()), 1.0) else sum(given.values())
    return Weights(**{name: weight / total for name, weight in given.items()})


def hybrid(
    preset: str | Weights,
    *,
    embedding: Stage | None = None,
    text: Stage | None = None,
    graph: Stage | None = None,
    intent: Stage | None = None,
) -> Stage:
    """The KG-OS score: weight of the preset times score over maximum, summed over the lanes that are given.

    The weights of the lanes that are not given go to the others in proportion; a lane that weighs nothing is
    not asked. In place of a preset there may be Weights of one's own. Raises UnknownName for a preset, and
    BadInput as `lane_weights` does.
    """
    lanes = {"embedding": embedding, "text": text, "graph": graph, "intent": intent}
    share = asdict(lane_weights(preset, *(name for name, lane in lanes.items() if lane is not None)))
    return weighted(
        *((share[name], lane) for name, lane in lanes.items() if lane is not None and share[name] > 0),
        scale="maximum",
    )
