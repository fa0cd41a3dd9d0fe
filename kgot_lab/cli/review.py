"""`kgot-lab memory FILE waiting`, `decide` and `review`: claims that were not sure enough to count, and what
a person decides of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.memory import (
    BY_COMMAND,
    ID_SHOWN,
    fact_drawn,
    fact_parts,
    fallen_lines,
    fallen_parts,
    memory_opened,
    print_rows,
)
from kgot_lab.errors import BadInput, LabError
from kgot_lab.text.counted import counted
from kgot_lab.text.harmless import harmless
from kgot_lab.text.surrogates import as_typed

if TYPE_CHECKING:
    from kgot_lab.memory.claims.claim import Queued
    from kgot_lab.memory.claims.claims import Claims
    from kgot_lab.memory.claims.ledger import Reviewer, Weighed
    from kgot_lab.types import Triple

_LISTED = 10  # facts under a heading
_LONGEST = 1_000  # characters of a text on the card of a claim: the keys stay in view
_DONE = {"accept": "accepted", "reject": "rejected", "override": "overridden"}
_KEYS = "a accept, r reject, o override, s skip, k back, u undo, q quit"
_VERDICTS = {"a": "accept", "r": "reject"}
_MOVES = {"s": 1, "j": 1, "k": -1}

_By = Annotated[str, typer.Option("--by", help="who decides, for the log")]
_ClaimShown = Annotated[str | None, typer.Argument(help="show this one alone: how its id begins")]
# by its id and by no number: the places in the list change with each decision, also with one of somebody
# else's
_ClaimMeant = Annotated[str, typer.Argument(help="how the id begins that `waiting` shows")]
_Verdict = Annotated[str, typer.Argument(help="accept, reject, or override with --confidence or --object")]
_Confidence = Annotated[
    float | None, typer.Option("--confidence", help="count with this confidence, from 0 to 1")
]
_Object = Annotated[
    str | None, typer.Option("--object", help="count with this object, in place of what was claimed")
]


def list_waiting(context: typer.Context, claim: _ClaimShown = None, as_json: options.AsJson = False) -> None:
    """List the claims that wait for review, first those by which most facts would begin to hold; or show one,
    with its sentence.
    """
    with memory_opened(context) as claims, claims.storage.reading():
        reviewer = _looking(claims, BY_COMMAND)
        if claim is None:
            rows = [*map(_row, reviewer.queue)]
            print_rows(rows, as_json, _line)
            terminal.say(f"{counted(len(rows), 'claim')} to decide on" if rows else reviewer.nothing_waits)
            return
        id = reviewer.waiting(as_typed(claim, "the id"))
        queued = next(each for each in reviewer.queue if each.claim.id == id)
        weighed = reviewer.weighed(queued)
    others = {
        "calibrated": weighed.calibrated,
        "single": weighed.single,
        "others": [*map(fact_parts, weighed.others)],
    }
    typer.echo(json.dumps(_row(queued) | others) if as_json else "\n".join(_card(queued, weighed)))


def decide_on_one(
    context: typer.Context,
    claim: _ClaimMeant,
    verdict: _Verdict,
    confidence: _Confidence = None,
    object: _Object = None,
    by: _By = BY_COMMAND,
    as_json: options.AsJson = False,
) -> None:
    """Accept, reject or override a claim that waits; `undo` takes it back."""
    if verdict == "override" and (confidence is None) == (object is None):
        raise BadInput(
            "an override takes another confidence or another object: --confidence NUMBER or --object TEXT, one of them"
        )
    with memory_opened(context) as claims:
        reviewer = _reviewer(claims, by)
        id = reviewer.waiting(as_typed(claim, "the id"))
        told = reviewer.decide(
            id,
            verdict,
            confidence=confidence,
            object=None if object is None else as_typed(object, "the object"),
        )
        fact = claims.claim(id).fact
    if as_json:
        typer.echo(json.dumps({"claim": id, **fact_parts(fact), "verdict": verdict, **fallen_parts(told)}))
        return
    typer.echo(harmless(f"{_DONE[verdict]}: {fact}"))
    typer.echo("\n".join(fallen_lines(told)))


def review_in_turn(context: typer.Context, by: _By = BY_COMMAND) -> None:
    """Decide on the claims that wait, one at a time, by keys; each decision is on file at once."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput(
            "a review takes keys from a terminal: elsewhere `waiting` lists what waits, and `decide ID accept` decides"
        )
    with memory_opened(context) as claims:
        reviewer = _looking(claims, by)
        try:
            _in_turn(reviewer)
        finally:  # also after Ctrl-C
            terminal.say(
                f"{counted(len(reviewer.decided), 'decision')} on file, {counted(len(reviewer.queue), 'claim')} to decide on"
            )


# --- one at a time
# --------------------------------------------------------------------------------------------------------


def _in_turn(reviewer: Reviewer) -> None:
    """Show the claim in view and do what a key says, until nothing waits or the reader has enough."""
    shown = None
    while queued := reviewer.in_view:
        if queued != shown:
            typer.echo(f"\n{reviewer.place + 1} of {len(reviewer.queue)}  {queued.claim.id[:ID_SHOWN]}")
            typer.echo("\n".join(_card(queued, reviewer.weighed(queued))))
        shown = queued
        typer.echo(f"[{_KEYS}] ", nl=False)
        key = _key()
        typer.echo(key if key.isprintable() else "")
        if key in ("q", ""):
            return
        try:
            _did(reviewer, key, queued)
        except LabError as error:  # somebody was first, or nonsense was typed: said, and the review goes on
            terminal.say(f"not done: {error}")
            reviewer.reload()
    typer.echo(reviewer.nothing_waits if not reviewer.decided else "Nothing waits any more.")


def _did(reviewer: Reviewer, key: str, queued: Queued) -> None:
    """Do what a key says to the claim in view."""
    if key in _MOVES:
        reviewer.move(_MOVES[key])
    elif key == "u":
        again = reviewer.undo()
        typer.echo(
            harmless(f"taken back: {again.fact} waits again")
            if again
            else "no decision of yours to take back"
        )
    elif key in _VERDICTS:
        _decide(reviewer, queued, _VERDICTS[key])
    elif key == "o":
        _override(reviewer, queued)


def _decide(reviewer: Reviewer, queued: Queued, verdict: str, **instead: Any) -> None:
    told = reviewer.decide(queued.claim.id, verdict, **instead)
    typer.echo(harmless(f"{_DONE[verdict]}: {queued.claim.fact}"))
    typer.echo("\n".join(fallen_lines(told)))
    reviewer.reload()


def _override(reviewer: Reviewer, queued: Queued) -> None:
    """Ask what a claim is to be instead; an empty line leaves it as it is."""
    try:
        if object := typer.prompt(
            "another object (empty: another confidence)", default="", show_default=False
        ):
            _decide(reviewer, queued, "override", object=as_typed(object, "the object"))
        elif given := typer.prompt(
            "another confidence, 0 to 1 (empty: neither)", default="", show_default=False
        ):
            _decide(reviewer, queued, "override", confidence=_number(given))
    except typer.Abort:  # Ctrl-C, or a signal that ends the program
        raise KeyboardInterrupt from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"a confidence is a number from 0 to 1, not {text!r}") from None


def _key() -> str:
    """The key that is pressed, as a small letter; "" at the end of input.

    What was typed before the claim was shown is dropped by the terminal, so that nobody decides on what they
    have not seen.
    """
    try:
        return typer.getchar().lower()
    except EOFError:
        return ""


# --- what is shown
# --------------------------------------------------------------------------------------------------------


def _reviewer(claims: Claims, by: str) -> Reviewer:
    from kgot_lab.memory.claims.ledger import Reviewer

    return Reviewer(claims, as_typed(by, "--by"))


def _looking(claims: Claims, by: str) -> Reviewer:
    reviewer = _reviewer(claims, by)
    reviewer.reload()
    return reviewer


def _row(queued: Queued) -> dict[str, Any]:
    claim, span = queued.claim, queued.claim.span
    return {
        "claim": claim.id, **fact_parts(claim.fact), "confidence": claim.confidence, "source": claim.source,
        "sentence": span.text if span else "", "start": span.start if span else None, "end": span.end if span else None,
        "said_by": claim.said_by, "kind": claim.kind, "premises": [*map(fact_parts, claim.premises)],
        "valid_from": claim.valid_from and claim.valid_from.isoformat(), "valid_until": claim.valid_until and claim.valid_until.isoformat(),
        "starts": [*map(fact_parts, queued.starts)],
    }  # fmt: skip


def _line(row: dict[str, Any]) -> str:
    return f"{row['claim'][:ID_SHOWN]}  {row['confidence']:.2f}  +{len(row['starts'])}  {fact_drawn(row)}  [{row['source']}]"


def _card(queued: Queued, weighed: Weighed) -> Iterator[str]:
    """A claim with what speaks for it and what it would change, in lines that can be printed."""
    from kgot_lab.memory.claims.claim import format_span

    claim, span = queued.claim, queued.claim.span
    valid = format_span(claim.valid_from, claim.valid_until)
    yield _cut(str(claim.fact))
    yield _cut(f"  “{span.text}”" if span and span.text else "  no sentence is noted that says it")
    where = f", characters {span.start:,} to {span.end:,}" if span else ""
    yield _cut(
        f"  from {claim.source}{where}"
        + f"; said by {claim.said_by}" * bool(claim.said_by)
        + f"; true {valid}" * bool(valid)
    )
    yield f"  {weighed.sure}"
    yield from _listed("it follows from", claim.premises)
    yield from _listed("if accepted, begins to hold", queued.starts)
    if weighed.idle:
        yield f"  if accepted, nothing new begins to hold: {weighed.idle}"
    yield from _listed("it contradicts" if weighed.single else "also holds", weighed.others)


def _listed(what: str, facts: Sequence[Triple]) -> Iterator[str]:
    yield from (_cut(f"  {what}: {fact}") for fact in facts[:_LISTED])
    if len(facts) > _LISTED:
        yield f"  {what}: and {len(facts) - _LISTED:,} more"


def _cut(text: str) -> str:
    line = harmless(text)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}… ({len(line) - _LONGEST:,} more characters)"
