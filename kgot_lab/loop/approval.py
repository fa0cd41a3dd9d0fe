"""A person in the loop: what a run asks before a tool call, a write or a paid model call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, LabError, attribute_errors, describe_value
from kgot_lab.io.coroutines import run_awaitable
from kgot_lab.loop.events import Decided

_LONGEST = 2_000  # characters of a proposal that an event keeps


@dataclass(frozen=True)
class Proposal:
    """What a run is about to do.

    `what` is "tool call" (its `text` is JSON of the arguments), "write" (a statement) or "model call" (the
    last message of the prompt, asked for models with a price). `about` says more: the tool, the source of the
    write, the model and the most that the call can cost.
    """

    what: str
    text: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.about}\n{self.text}"


@dataclass(frozen=True)
class Deny:
    """The answer of an `approve` function that denies a proposal, with the reason."""

    reason: str = "not approved"


class NotApproved(LabError):
    """A proposal that was denied."""


# True approves, a text takes the place of the proposal's, and False or Deny(reason) denies it.
_Decision: TypeAlias = bool | str | Deny
Approve: TypeAlias = Callable[[Proposal], _Decision | Awaitable[_Decision]]


@check_arguments
def decide(approve: Approve, proposal: Proposal) -> tuple[str, str]:
    """Ask for a decision, and return it with its text: "approved", "changed" (to it) or "denied" (for it).

    A coroutine is run to its end. Raises BadInput for any other answer.
    """
    with attribute_errors(f"approve({proposal.what}) failed"):
        answer = run_awaitable(approve(proposal))
    if isinstance(answer, bool):
        answer = proposal.text if answer else Deny()
    if isinstance(answer, str) and not answer.strip():
        answer = Deny("its text was emptied")
    if isinstance(answer, Deny):
        return "denied", answer.reason or Deny().reason
    if not isinstance(answer, str):
        given = f"approve({proposal.what}) returned {describe_value(answer)}"
        raise BadInput(f"{given}; it returns True, False, Deny(reason), or the text to take instead")
    return ("approved", "") if answer == proposal.text else ("changed", answer)


def shortened(text: str) -> str:
    """Return the text of a proposal as its event keeps it."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def decision_of(event: Decided) -> _Decision:
    """Return a recorded decision as the answer of an `approve` function."""
    if event.decision == "denied":
        return Deny(event.text)
    return event.text if event.decision == "changed" else True
