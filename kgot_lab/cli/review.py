"""`kgot-lab memory FILE waiting` and `decide`: human review of uncertain claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from kgot_lab.cli import memory, options, terminal
from kgot_lab.cli.options import argument, option
from kgot_lab.errors import BadInput
from kgot_lab.text.cleaning import checked_text, decode_argument, format_count, printable_line

if TYPE_CHECKING:
    from kgot_lab.memory.claims.claim import QueuedClaim
    from kgot_lab.memory.claims.claims import Claims
    from kgot_lab.memory.claims.review import ClaimReview, DecisionEvidence
    from kgot_lab.types import Triple

_MAX_FACTS = 10  # facts under a heading
_MAX_LENGTH = 1_000  # characters of a text on the card of a claim
_VERDICT_DONE = {"accept": "accepted", "reject": "rejected", "override": "overridden"}


# by its id and not by its index, since indices change with each decision, also with those of others


@memory.memories.command("waiting")
def list_waiting(
    context: typer.Context,
    claim: str | None = argument("show only this one: the beginning of its id", default=None),
    as_json: bool = options.AS_JSON,
) -> None:
    """List the claims that wait for review, or show one with its sentence.

    Claims that would establish most facts come first.
    """
    with memory.opened_memory(context) as claims, claims.storage.reading():
        reviewer = _reviewer(claims, memory.BY_COMMAND)
        queue = reviewer.queue()
        if claim is None:
            rows = [*map(_row, queue)]
            memory.print_result(rows, as_json, map(_format_row, rows))
            waiting = f"{format_count(len(rows), 'claim')} to decide on"
            terminal.say(waiting if rows else reviewer.nothing_waits)
            return
        id = reviewer.find_waiting(decode_argument(claim, "the id"))
        queued = next(each for each in queue if each.claim.id == id)
        weighed = reviewer.weighed(queued)
    row = _row(queued) | {"calibrated": weighed.calibrated, "single": weighed.single}
    row["others"] = [*map(memory.fact_to_json, weighed.others)]
    memory.print_result(row, as_json, _claim_card(queued, weighed))


@memory.memories.command("decide")
def decide_claim(
    context: typer.Context,
    claim: str = argument("the beginning of the id that `waiting` shows"),
    verdict: str = argument("accept, reject, or override with --confidence or --object"),
    confidence: float | None = option("count with this confidence, from 0 to 1"),
    object: str | None = option("count with this object, in place of what was claimed"),
    by: str = memory.BY_OPTION,
    as_json: bool = options.AS_JSON,
) -> None:
    """Accept, reject or override a waiting claim. `undo` reverses it."""
    if verdict == "override" and (confidence is None) == (object is None):
        raise BadInput("an override takes one of --confidence (another confidence) and --object (another)")
    with memory.opened_memory(context) as claims:
        reviewer = _reviewer(claims, by)
        id = reviewer.find_waiting(decode_argument(claim, "the id"))
        other = None if object is None else decode_argument(object, "the object")
        effects = reviewer.decide(id, verdict, confidence=confidence, object=other)
        fact = claims.claim(id).fact
    result = {"claim": id, **memory.fact_to_json(fact), "verdict": verdict, **memory.effects_to_json(effects)}
    memory.print_result(result, as_json, [f"{_VERDICT_DONE[verdict]}: {fact}", *memory.effect_lines(effects)])


# --- formatting ---


def _reviewer(claims: Claims, by: str) -> ClaimReview:
    from kgot_lab.memory.claims.review import ClaimReview

    return ClaimReview(claims, checked_text(decode_argument(by, "--by"), "who decides (--by)"))


def _row(queued: QueuedClaim) -> dict[str, Any]:
    claim, span = queued.claim, queued.claim.span
    return {
        "claim": claim.id, **memory.fact_to_json(claim.fact), "confidence": claim.confidence, "source": claim.source,
        "sentence": span.text if span else "", "start": span.start if span else None, "end": span.end if span else None,
        "said_by": claim.said_by, "kind": claim.kind, "premises": [*map(memory.fact_to_json, claim.premises)],
        "valid_from": claim.valid_from and claim.valid_from.isoformat(), "valid_until": claim.valid_until and claim.valid_until.isoformat(),
        "starts": [*map(memory.fact_to_json, queued.starts)],
    }  # fmt: skip


def _format_row(row: dict[str, Any]) -> str:
    id = row["claim"][: memory.ID_PREFIX_LENGTH]
    starts = f"+{len(row['starts'])}  {memory.format_fact_row(row)}"
    return f"{id}  {row['confidence']:.2f}  {starts}  [{row['source']}]"


def _claim_card(queued: QueuedClaim, weighed: DecisionEvidence) -> Iterator[str]:
    """Format a claim with its evidence and its effects as printable lines."""
    from kgot_lab.io.times import format_period

    claim, span = queued.claim, queued.claim.span
    valid = format_period(claim.valid_from, claim.valid_until)
    yield _truncate(str(claim.fact))
    yield _truncate(f"  “{span.text}”" if span and span.text else "  no sentence is noted that says it")
    position = f", characters {span.start:,} to {span.end:,}" if span else ""
    said_by = f"; said by {claim.said_by}" if claim.said_by else ""
    yield _truncate(f"  from {claim.source}{position}{said_by}" + (f"; true {valid}" if valid else ""))
    yield f"  {weighed.sure}"
    yield from _fact_lines("it follows from", claim.premises)
    yield from _fact_lines("if accepted, begins to hold", queued.starts)
    if weighed.idle:
        yield f"  if accepted, nothing new begins to hold: {weighed.idle}"
    yield from _fact_lines("it contradicts" if weighed.single else "also holds", weighed.others)


def _fact_lines(label: str, facts: Sequence[Triple]) -> Iterator[str]:
    yield from (_truncate(f"  {label}: {fact}") for fact in facts[:_MAX_FACTS])
    if len(facts) > _MAX_FACTS:
        yield f"  {label}: and {len(facts) - _MAX_FACTS:,} more"


def _truncate(text: str) -> str:
    line = printable_line(text)
    rest = len(line) - _MAX_LENGTH
    return line if rest <= 0 else f"{line[:_MAX_LENGTH]}… ({rest:,} more characters)"
