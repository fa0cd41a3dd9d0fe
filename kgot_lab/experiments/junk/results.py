"""What share of the facts that a memory wrote no sentence says, and how long the rest of a trial will take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from kgot_lab.evaluation.significance import Estimate, grouped_interval
from kgot_lab.evaluation.tables import Cell, Grid, decimal
from kgot_lab.experiments.junk.trial import TAUGHT_WAYS, JunkReceipt, JunkTrial
from kgot_lab.llm.budget import Rate
from kgot_lab.text.sentences import sentences
from kgot_lab.text.tokens import tokens
from kgot_lab.types import Json

_FEW = 3  # receipts of a way below which its time is reckoned from tokens
_ASKED = {"schema": 330, "grounded": 250}  # tokens of a prompt without its text
_SHORT = 80  # of those of a grounded prompt, which a local engine reads anew for each sentence
_NOTED = {"schema": 200, "grounded": 40}  # tokens of a reply: eight facts as JSON, two or three as lines
_RATE = Rate()  # that of a 1.5B model on two cores
_MOST_READ = {"schema": 6000, "grounded": 50}  # tokens, and sentences


@dataclass(frozen=True)
class JunkShares:
    """How many messages one way was taught by, how many replies were no list, and what became of the facts
    that a model noted.

    The shares are of the facts written, with intervals for which messages are drawn, since the facts of a
    message stand or fall together; None where fewer than two messages have any.
    """

    way: str
    messages: int
    failed: int
    refused: int
    written: int
    waiting: int
    no_sentence: Estimate | None
    not_said: Estimate | None


def junk_shares(receipts: Sequence[JunkReceipt]) -> list[JunkShares]:
    """The shares of each way."""
    found = []
    for way in TAUGHT_WAYS:
        some = [receipt for receipt in receipts if receipt.way == way]
        if some:
            found.append(
                JunkShares(
                    way,
                    len(some),
                    sum(bool(each.failed) for each in some),
                    sum(each.refused for each in some),
                    sum(each.written for each in some),
                    sum(each.waiting for each in some),
                    _share(some, lambda each: each.no_sentence),
                    _share(some, lambda each: each.no_sentence + each.another_relation),
                )
            )
    return found


def junk_grid(receipts: Sequence[JunkReceipt], model: str) -> Grid:
    """The shares as a table."""
    columns = (
        "way", "messages", "replies that were no list", "facts refused", "facts written", "of them to review",
        "no sentence names both ends [95 %]", "nor with its relation [95 %]",
    )  # fmt: skip
    rows = [
        (
            each.way, f"{each.messages:,}", f"{each.failed:,}", f"{each.refused:,}", f"{each.written:,}", f"{each.waiting:,}",
            _told(each.no_sentence), _told(each.not_said),
        )
        for each in junk_shares(receipts)
    ]  # fmt: skip
    of = "Simulated model: " if model.startswith("simulated") else ""
    return Grid(f"{of}What a memory writes", columns, tuple(tuple(map(Cell, row)) for row in rows))


def junk_figures(receipts: Sequence[JunkReceipt], model: str) -> dict[str, Json]:
    """The same as plain values, with what the calls cost."""
    told = []
    for each in junk_shares(receipts):
        some = [receipt for receipt in receipts if receipt.way == each.way]
        told.append(
            {
                **{
                    name: vars(value) if isinstance(value, Estimate) else value
                    for name, value in vars(each).items()
                },
                "calls": sum(receipt.calls for receipt in some),
                "prompt_tokens": sum(receipt.prompt_tokens for receipt in some),
                "completion_tokens": sum(receipt.completion_tokens for receipt in some),
                "seconds": round(sum(receipt.seconds for receipt in some), 1),
            }
        )
    return {"model": model, "ways": told}


def expected_rest_grid(trial: JunkTrial, receipts: Sequence[JunkReceipt]) -> Grid:
    """How long what is missing will take: by the mean of the receipts on file, or from tokens."""
    rows = []
    for way in trial.ways:
        left = [message.text for message, missing in trial.missing() if missing == way]
        took = [receipt.seconds for receipt in receipts if receipt.way == way]
        known = len(took) >= _FEW
        seconds = len(left) * fmean(took) if known else sum(_reckoned(text, way) for text in left)
        rows.append(
            (way, f"{len(left):,}", f"{seconds / 60:,.0f}", f"mean of {len(took)}" if known else "reckoned")
        )
    return Grid(
        "What is left", ("way", "messages", "minutes", "from"), tuple(tuple(map(Cell, row)) for row in rows)
    )


def _reckoned(text: str, way: str) -> float:
    if way == "schema":
        return _RATE.seconds(_ASKED[way] + min(tokens(text), _MOST_READ[way]), _NOTED[way])
    pieces = sentences(" ".join(text.split()))[: _MOST_READ[way]]
    return sum(_RATE.seconds(_SHORT + tokens(piece), _NOTED[way]) for piece in pieces)


def _share(receipts: Sequence[JunkReceipt], junk: Callable[[JunkReceipt], int]) -> Estimate | None:
    having = [receipt for receipt in receipts if receipt.written]
    if len(having) < 2:
        return None
    values = [float(number < junk(receipt)) for receipt in having for number in range(receipt.written)]
    groups = [receipt.id for receipt in having for _ in range(receipt.written)]
    return grouped_interval(values, groups)


def _told(estimate: Estimate | None) -> str:
    return (
        f"{decimal(estimate.mean)} [{decimal(estimate.low)}, {decimal(estimate.high)}]"
        if estimate is not None
        else ""
    )
