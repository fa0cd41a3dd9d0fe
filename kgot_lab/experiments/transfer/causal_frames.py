"""Texts as causal frames by a language model: an aim, steps in a closed vocabulary of roles and outcomes with
their links, and an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.evaluation.significance import Numbers
from kgot_lab.experiments.transfer.outcomes import OUTCOME_PHRASES, ordered_likeness
from kgot_lab.llm.structured import structured
from kgot_lab.types import LLM, Message, Prompt

FrameRole = Literal["doer", "helper", "opponent", "receiver", "holder", "whole", "part", "thing"]
OutcomeName = Literal[
    "gains", "loses", "gives", "takes in", "gives off", "enables", "prevents", "protects", "harms", "mends", "makes", "ends", "begins",
    "grows", "shrinks", "turns into", "stays", "moves", "rises", "falls", "joins", "parts", "holds", "seeks", "succeeds", "fails",
    "learns", "warns", "enjoys", "suffers", "returns", "prepares", "uses up", "resists",
]  # fmt: skip
FrameLink = Literal["first", "then", "so", "because", "but"]
FrameAim = Literal["to gain", "to keep", "to avoid", "to know", "to make", "to change", "none"]
FrameEnd = Literal["good", "bad", "mixed", "neither"]
MOST_FRAME_STEPS = 4


class CausalStep(BaseModel):
    """Who does what, and how it hangs on the step before."""

    link: FrameLink
    who: FrameRole
    does: OutcomeName


class CausalFrame(BaseModel):
    """What a text tells, without a word of its field: a reply that holds any other word than those of the vocabulary is refused."""

    aim: FrameAim
    steps: list[CausalStep] = Field(min_length=1, max_length=MOST_FRAME_STEPS)
    end: FrameEnd


FRAME_RULES = f"""\
You read a text and write down only what causes what, in a closed vocabulary.
"aim": what is wanted in it. "steps": at most {MOST_FRAME_STEPS}, in the order in which things happen: how the step hangs on the one \
before ("so" for what follows from it, "because" for its cause, "but" for what goes against it), who acts (the part that is played, \
not the name), and what happens. "end": how it ends for the doer."""
FRAME_EXAMPLES = (
    ("Nadia begged her brother to fix the kite. He refused, and the kite rotted in the shed.",
     '{"aim":"to gain","steps":[{"link":"first","who":"doer","does":"seeks"},{"link":"but","who":"opponent","does":"resists"},'
     '{"link":"so","who":"thing","does":"ends"}],"end":"bad"}'),
    ("When the flywheel spins too fast, the weights of the governor rise and throttle the steam, so that it slows down again.",
     '{"aim":"to keep","steps":[{"link":"first","who":"thing","does":"grows"},{"link":"so","who":"part","does":"rises"},'
     '{"link":"so","who":"part","does":"prevents"},{"link":"so","who":"whole","does":"returns"}],"end":"good"}'),
    ("A mosaic consists of hundreds of tesserae, and no two have the same tint.",
     '{"aim":"none","steps":[{"link":"first","who":"whole","does":"holds"},{"link":"then","who":"part","does":"parts"}],"end":"neither"}'),
    ("The scout told the caravan of the sandstorm. They pitched their tents behind the cliff and came through unhurt.",
     '{"aim":"to avoid","steps":[{"link":"first","who":"helper","does":"warns"},{"link":"so","who":"doer","does":"prepares"},'
     '{"link":"so","who":"doer","does":"succeeds"}],"end":"good"}'),
)  # fmt: skip
OPPOSITE = {"good": "bad", "bad": "good"}
_STEPS, _AIM, _END = (
    0.6,
    0.2,
    0.2,
)  # of the likeness of two frames; written down once, before any was compared
_WHAT, _WHO, _HOW = 0.7, 0.15, 0.15  # of the likeness of two steps


def causal_frame(model: LLM, text: str) -> CausalFrame:
    """What causes what in a text, as a model reads it. Raises LLMError, and BadReply for a reply outside of
    the vocabulary.
    """
    turns = [
        Message(*turn)
        for told, frame in FRAME_EXAMPLES
        for turn in (("user", f"Text: {told}"), ("assistant", frame))
    ]
    asked = Prompt((Message("system", FRAME_RULES), *turns, Message("user", f"Text: {text}")), max_tokens=160)
    return structured(model, asked, CausalFrame)


class FrameLikeness:
    """How alike two frames are: their steps laid side by side in order, their aims and their ends; nothing is fitted.

    Two outcomes are as alike as the embeddings of their phrases, in deviations from the mean; steps count .6, of which who acts and the
    link have .15 each; aim and end count .2, and opposite ends count against.
    """

    def __init__(self, embedder: Embedder) -> None:
        rows = np.array(
            [
                np.asarray(embedder.embed(list(phrases)), np.float64).mean(axis=0)
                for phrases in OUTCOME_PHRASES.values()
            ]
        )
        rows -= rows.mean(axis=0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self._place = {name: place for place, name in enumerate(OUTCOME_PHRASES)}
        self._near = np.clip(rows @ rows.T, 0, 1)

    def of(self, one: CausalFrame, others: Sequence[CausalFrame]) -> Numbers:
        """The likeness of a frame to each of some others, from -.2 to 1."""
        return np.array([self._pair(one, other) for other in others], np.float64)

    def _pair(self, one: CausalFrame, other: CausalFrame) -> float:
        what = self._near[
            np.ix_(
                [self._place[step.does] for step in one.steps],
                [self._place[step.does] for step in other.steps],
            )
        ]
        who = [[mine.who == theirs.who for theirs in other.steps] for mine in one.steps]
        how = [[mine.link == theirs.link for theirs in other.steps] for mine in one.steps]
        alike = _WHAT * what + _WHO * np.array(who) + _HOW * np.array(how)
        steps = ordered_likeness(alike)
        end = 1.0 if one.end == other.end else -1.0 if OPPOSITE.get(one.end) == other.end else 0.0
        return _STEPS * steps + _AIM * (one.aim == other.aim) + _END * end
