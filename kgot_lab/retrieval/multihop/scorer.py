"""The learnt scorer of clues: a small network, kept as numbers in a file that comes with the package."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput
from kgot_lab.retrieval.multihop.features import CLUES
from kgot_lab.types import Json

_Floats = NDArray[np.float64]
LEARNT_WEIGHTS = "weights.json"  # beside this file; benchmarks/standard_sets/fit_trail.py writes both
WITHOUT_LINKS = (
    "weights_without_links.json"  # a control, learnt in the same way without any clue that a name gives
)


@dataclass(frozen=True, eq=False)
class Scorer:
    """score(x) = straight . x + bent . tanh(x inner + bias): the higher, the likelier a passage comes next.

    Shapes, of n clues and u units: straight (n,), inner (n, u), bias (u,), bent (u,). Raises BadInput for
    others, or what is no number.
    """

    straight: _Floats
    inner: _Floats
    bias: _Floats
    bent: _Floats

    def __post_init__(self) -> None:
        clues, units = len(CLUES), len(self.bias)
        shapes = [part.shape for part in (self.straight, self.inner, self.bias, self.bent)]
        if shapes != [(clues,), (clues, units), (units,), (units,)]:
            raise BadInput(
                f"a scorer of {clues} clues has other shapes than {shapes}; fit it anew with benchmarks/standard_sets/fit_trail.py"
            )
        if not all(np.isfinite(part).all() for part in (self.straight, self.inner, self.bias, self.bent)):
            raise BadInput("the weights of a scorer are finite numbers")

    def __call__(self, table: NDArray[np.floating[Any]]) -> _Floats:
        """The score of each row of clues, shape (rows, CLUES); in 32 bits, which takes a third of the time."""
        straight, inner, bias, bent = (
            part.astype(np.float32) for part in (self.straight, self.inner, self.bias, self.bent)
        )
        table = table.astype(np.float32, copy=False)
        bends = table @ inner
        bends += bias
        return np.asarray(table @ straight + np.tanh(bends, out=bends) @ bent, np.float64)

    @staticmethod
    def of_clues(weights: Mapping[str, float]) -> Scorer:
        """A scorer without units, by the weight of each clue; those not named weigh nothing."""
        return Scorer(
            np.array([weights.get(clue, 0.0) for clue in CLUES]),
            np.zeros((len(CLUES), 0)),
            np.zeros(0),
            np.zeros(0),
        )

    @property
    def mark(self) -> str:
        """The first characters of a SHA-256 of the weights: a search by other weights has another name."""
        return hashlib.sha256(json.dumps(self.as_json()).encode()).hexdigest()[:8]

    def as_json(self) -> dict[str, Json]:
        """The same as JSON values, with the names of the clues."""
        numbers = {
            name: np.round(getattr(self, name).astype(np.float64), 5).tolist()
            for name in ("straight", "inner", "bias", "bent")
        }
        return {"clues": list(CLUES), **numbers}

    @staticmethod
    def of_json(values: Json) -> Scorer:
        """What `as_json` gave; raises BadInput for anything else, or for other clues."""
        if not isinstance(values, dict) or values.get("clues") != list(CLUES):
            raise BadInput(
                "these weights are of other clues than there are now; fit them anew with benchmarks/standard_sets/fit_trail.py"
            )
        try:
            return Scorer(
                *(np.array(values[name], np.float64) for name in ("straight", "inner", "bias", "bent"))
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"these are no weights of a scorer ({error!r})") from None


@cache
def learnt_scorer(weights: str = LEARNT_WEIGHTS) -> Scorer:
    """A scorer that comes with the package, learnt on the develop questions of the bundled sets:
    docs/recall.md says of which.
    """
    return Scorer.of_json(
        json.loads(resources.files(__package__).joinpath(weights).read_text(encoding="utf-8"))
    )
