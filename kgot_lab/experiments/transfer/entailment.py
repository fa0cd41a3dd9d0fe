"""Is a text a case of what another tells in general? The abstract statement of a source, step by step, asked
of a candidate.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from kgot_lab.analogy.skeleton_makers import ModelSkeletons
from kgot_lab.analogy.vocabulary_leaks import LeakCheck
from kgot_lab.errors import BadReply, LLMError
from kgot_lab.llm.structured import checked_reply
from kgot_lab.types import LLM, Message, Prompt

CASE_RULES = """\
You read a text and a general statement. In the statement "someone", "something", "a group", "a part", "a whole" and "a state" may stand \
for anybody and anything in the text. Is the text a case of the statement? Reply with Yes or No alone."""
CASE_EXAMPLES = (
    ("Termites tunnel through the beam unseen. One evening the ceiling gives way.",
     "Something weakens a whole slowly from within", "Yes"),
    ("Rinse the lentils in a sieve. Then pick out the grit.", "Someone receives something and shows a strong state", "No"),
    ("Nadia had longed for a seat in the choir since girlhood. When the envelope came she ran down the lane singing.",
     "Someone wants something for long", "Yes"),
    ("The ferry was late. The passengers sat on the quay and grumbled.", "a group takes more, which causes the lack", "No"),
)  # fmt: skip
_JOINT = re.compile(
    r"\s*(?:;|,\s*(?:and|but|so that|so|until|because|which|who|then)\b|\b(?:so that|until|because)\b)\s*",
    re.IGNORECASE,
)
_LEAST_WORDS = 3  # of a step that can be asked about


def steps_of(statement: str) -> tuple[str, ...]:
    """The steps of an abstract statement: its parts between joints such as ", and", "so that" and "until".

    A statement without joints, or of which a part would have fewer than three words, is its own only step.
    """
    pieces = [piece.strip(" .,") for piece in _JOINT.split(statement)]
    if any(len(piece.split()) < _LEAST_WORDS for piece in pieces):
        return (statement.strip(" ."),)
    return tuple(pieces)


def abstract_statement(model: LLM, text: str, leaks: LeakCheck) -> str:
    """What a text tells, about anything: a model's skeleton, given back once to be said without the words of
    the text's field.

    Of the two the one with fewer such words stays; it may still hold some.
    Raises LLMError, BadReply.
    """
    return ModelSkeletons(model, leaks=leaks)([text])[0]


def entailed(model: LLM, statement: str, candidates: Sequence[str]) -> list[list[float]]:
    """For each candidate how likely the model holds each step of the statement to be true of it, from 0 to 1.

    That is the probability of "Yes" where it says so, and one less that of "No" where it says no. Raises
    LLMError where the model does not tell how likely its reply is, and BadReply for a reply that is neither.
    """
    return [[_holds(model, text, step) for step in steps_of(statement)] for text in candidates]


def _holds(model: LLM, text: str, step: str) -> float:
    examples = [(f"Text: {told}\nStatement: {said}.", answer) for told, said, answer in CASE_EXAMPLES]
    turns = [
        Message(*turn) for asked, answer in examples for turn in (("user", asked), ("assistant", answer))
    ]
    last = Message("user", f"Text: {text}\nStatement: {step}.")
    reply = checked_reply(
        model, Prompt((Message("system", CASE_RULES), *turns, last), max_tokens=1, likelihood=True)
    )
    said = reply.text.strip().casefold()
    if said not in {"yes", "no"}:
        raise BadReply("it is neither Yes nor No", reply.text)
    if reply.logprob is None:
        raise LLMError(
            f"{model.name} does not tell how likely it held its reply: ask a model that does, such as the local one"
        )
    return math.exp(reply.logprob) if said == "yes" else 1 - math.exp(reply.logprob)


def log_odds(steps: Sequence[float]) -> float:
    """The mean log-odds of some probabilities, each kept a thousandth away from 0 and 1, so that no step
    decides alone.
    """
    kept = [min(max(step, 1e-3), 1 - 1e-3) for step in steps]
    return sum(math.log(step / (1 - step)) for step in kept) / len(kept)
