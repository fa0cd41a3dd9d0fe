"""`kgot-lab memory FILE waiting`, `decide` and `review`: human review of uncertain claims."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import typer

from kgot_lab.cli import memory, options, terminal
from kgot_lab.cli.options import argument, option
from kgot_lab.errors import BadInput, LabError
from kgot_lab.text.cleaning import checked_text, decode_argument, format_count, printable_line

if TYPE_CHECKING:
    from kgot_lab.memory.claims.claim import Cardinality, QueuedClaim
    from kgot_lab.memory.claims.claims import Claims
    from kgot_lab.memory.claims.review import ClaimReview, DecisionEvidence
    from kgot_lab.types import Triple

_MAX_FACTS = 10  # facts under a heading
_MAX_LENGTH = 1_000  # characters of a text on the card of a claim: the keys stay in view
_VERDICT_DONE = {"accept": "accepted", "reject": "rejected", "override": "overridden"}
_KEY_HELP = "a accept, r reject, o override, s skip, k back, u undo, q quit"
_VERDICT_KEYS = {"a": "accept", "r": "reject"}
_MOVE_KEYS = {"s": 1, "j": 1, "k": -1}


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


@memory.memories.command("review")
def review_claims(context: typer.Context, by: str = memory.BY_OPTION) -> None:
    """Decide on the waiting claims one at a time, with single keys. Each decision is stored at once."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("a review takes keys from a terminal: elsewhere use `waiting` and `decide ID accept`")
    with memory.opened_memory(context) as claims:
        screen = _ReviewScreen(_reviewer(claims, by))
        try:
            screen.run()
        finally:  # also after Ctrl-C
            decided = format_count(len(screen.reviewer.decided), "decision")
            terminal.say(f"{decided} on file, {format_count(len(screen.waiting), 'claim')} to decide on")


# --- interactive review ---


class _ReviewScreen:
    """One claim at a time: `waiting` is the queue as of the last decision, `place` the index of the claim shown."""

    def __init__(self, reviewer: ClaimReview) -> None:
        self.reviewer, self.waiting, self.place = reviewer, reviewer.queue(), 0

    def run(self) -> None:
        """Show the current claim and apply each key, until no claim waits or the reviewer quits."""
        shown = None
        while self.waiting:
            queued = self.waiting[self.place]
            if queued != shown:
                position = f"{self.place + 1} of {len(self.waiting)}"
                typer.echo(f"\n{position}  {queued.claim.id[: memory.ID_PREFIX_LENGTH]}")
                typer.echo("\n".join(_claim_card(queued, self.reviewer.weighed(queued))))
            shown = queued
            typer.echo(f"[{_KEY_HELP}] ", nl=False)
            key = _read_key()
            typer.echo(key if key.isprintable() else "")
            if key in ("q", ""):
                return
            try:
                self._apply_key(key, queued)
            except LabError as error:  # already decided, or invalid input: reported, and the review continues
                terminal.say(f"not done: {error}")
                self._reload()
        typer.echo(self.reviewer.nothing_waits if not self.reviewer.decided else "Nothing waits any more.")

    def _apply_key(self, key: str, queued: QueuedClaim) -> None:
        if key in _MOVE_KEYS:
            self.place = (self.place + _MOVE_KEYS[key]) % len(self.waiting)
        elif key == "u":
            self._undo_last()
        elif key in _VERDICT_KEYS:
            self._decide(queued, _VERDICT_KEYS[key])
        elif key == "o":
            self._override(queued)

    def _reload(self) -> None:
        """Read the queue again, and stay at the claim shown or go to the next one that still waits."""
        before, self.waiting = self.waiting[self.place :] + self.waiting[: self.place], self.reviewer.queue()
        positions = {queued.claim.id: position for position, queued in enumerate(self.waiting)}
        ids = (queued.claim.id for queued in before)
        self.place = next((positions[id] for id in ids if id in positions), 0)

    def _undo_last(self) -> None:
        """Undo the last decision that was made here, and show its claim."""
        claim = self.reviewer.decided[-1][1] if self.reviewer.decided else ""
        if self.reviewer.undo() is None:
            typer.echo("no decision of yours to take back")
            return
        self._reload()
        ids = [queued.claim.id for queued in self.waiting]
        self.place = ids.index(claim) if claim in ids else self.place
        fact = self.reviewer.claims.claim(claim).fact
        typer.echo(printable_line(f"taken back: {fact} waits again"))

    def _decide(self, queued: QueuedClaim, verdict: str, **instead: Any) -> None:
        effects = self.reviewer.decide(queued.claim.id, verdict, **instead)
        typer.echo(printable_line(f"{_VERDICT_DONE[verdict]}: {queued.claim.fact}"))
        typer.echo("\n".join(memory.effect_lines(effects)))
        self._reload()

    def _override(self, queued: QueuedClaim) -> None:
        """Ask for a replacement of a claim. An empty line leaves it unchanged."""
        try:
            ask = partial(typer.prompt, default="", show_default=False)
            if object := ask("another object (empty: another confidence)"):
                self._decide(queued, "override", object=decode_argument(object, "the object"))
            elif confidence := ask("another confidence, 0 to 1 (empty: neither)"):
                self._decide(queued, "override", confidence=_parse_confidence(confidence))
        except typer.Abort:  # Ctrl-C, or a signal that ends the program
            raise KeyboardInterrupt from None


def _parse_confidence(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"a confidence is a number from 0 to 1, not {text!r}") from None


def _read_key() -> str:
    """Read a key press as a lower-case character, or "" at the end of input.

    The terminal discards what was typed before the claim was shown, so that nobody decides on a claim unseen.
    """
    try:
        return typer.getchar().lower()
    except EOFError:
        return ""


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


# `kgot-lab memory FILE relations`, `declare`, `changes`, `names`, `merge`, `unmerge`: schema and names.

_RELATION = argument("a relation, as `facts` shows it")


@memory.memories.command("relations")
def list_relations(context: typer.Context, as_json: bool = options.AS_JSON) -> None:
    """List the relations, with their declared cardinality (single or many).

    For undeclared relations, the cardinality suggested by the facts is shown.
    """
    with memory.opened_memory(context) as claims:
        declared, suggested = claims.declared(), claims.suggested_cardinalities()
    rows: list[dict[str, Any]] = [
        {"relation": relation, "declared": cardinality, "suggested": None, "subjects": None, "several": None}
        for relation, cardinality in sorted(declared.items())
    ]
    rows += [
        {"relation": each.relation, "declared": None, "suggested": each.cardinality}
        | {"subjects": each.subjects, "several": each.several}
        for each in suggested
    ]

    def line(row: dict[str, Any]) -> str:
        if row["declared"]:
            return f"{row['relation']}: declared {row['declared']}"
        return f"{row['relation']}: {row['suggested']}? {row['several']} of {format_count(row['subjects'], 'subject')} with several objects"

    memory.print_result(rows, as_json, map(line, rows))
    terminal.say(f"{format_count(len(rows), 'relation')}; what is suggested counts once it is declared")


@memory.memories.command("declare")
def declare_relation(
    context: typer.Context,
    relation: str = _RELATION,
    cardinality: str = argument("single: one object at a time, the one that began last; or many"),
    by: str = memory.BY_OPTION,
    as_json: bool = options.AS_JSON,
) -> None:
    """Declare a relation single or many.

    A single relation has one object at a time: the later fact is the answer, and the earlier stays on record.
    """
    with memory.opened_memory(context) as claims:
        name = decode_argument(relation, "the relation")
        change = claims.declare(name, cast("Cardinality", cardinality), by=by)
        known = any(fact.relation == name for fact in claims.recorded_facts())
    _print_change(change, as_json, f"{name} is {cardinality}")
    if not known:
        terminal.say(f"note: no fact has the relation {name!r} yet")


@memory.memories.command("changes")
def show_changes(
    context: typer.Context,
    subject: str = argument("what is asked about"),
    relation: str = _RELATION,
    as_of: str | None = options.AS_OF,
    as_json: bool = options.AS_JSON,
) -> None:
    """Show the current and past objects of a subject and relation, with times and conflicts."""
    with memory.opened_memory(context) as claims:
        at = None if as_of is None else memory.parse_time(as_of)
        beliefs = claims if at is None else claims.as_of(at)
        names = decode_argument(subject, "the subject"), decode_argument(relation, "the relation")
        periods = beliefs.changes_of(*names)
        now = at if at is not None else claims.now()

    rows = [
        {"objects": [fact.object for fact in period.facts]}
        | {"from": _iso_time(period.since), "until": _iso_time(period.until)}
        | {"contested": period.contested, "now": period.covers(now)}
        for period in periods
        if period.facts
    ]

    def line(row: dict[str, Any]) -> str:
        ends = [f"{word} {row[word][:10]}" for word in ("from", "until") if row[word]]
        objects = f"{'; '.join(row['objects'])}   {' '.join(ends) or 'at any time'}"
        return f"{'*' if row['now'] else ' '} {objects}{'   contested' if row['contested'] else ''}"

    memory.print_result(rows, as_json, map(line, rows))
    if not rows:
        terminal.say("nothing is known of that; a name or a relation is spelled as `facts` shows it")


@memory.memories.command("names")
def list_names(context: typer.Context, as_json: bool = options.AS_JSON) -> None:
    """List the merged names, and pairs of names that may mean the same, with reasons.

    No pair is merged automatically.
    """
    with memory.opened_memory(context) as claims:
        merged, proposed = claims.names().merges, claims.propose_merges()
    rows: list[dict[str, Any]] = [
        {"kept": name, "other": other, "merged": True, "reasons": []}
        for other, name in sorted(merged.items())
    ]
    rows += [
        {"kept": each.kept, "other": each.other, "merged": False, "reasons": [*each.reasons]}
        for each in proposed
    ]

    def line(row: dict[str, Any]) -> str:
        if row["merged"]:
            return f"{row['other']} is read as {row['kept']}"
        return f"merge {row['kept']!r} {row['other']!r}?   {'; '.join(row['reasons'])}"

    memory.print_result(rows, as_json, map(line, rows))
    terminal.say(f"{len(merged)} merged, {len(proposed)} proposed")


@memory.memories.command("merge")
def merge_names(
    context: typer.Context,
    kept: str = argument("the name that stays"),
    other: str = argument("the name that is merged into it"),
    by: str = memory.BY_OPTION,
    as_json: bool = options.AS_JSON,
) -> None:
    """Merge a name into another. Facts keep their own names, so `unmerge` undoes it exactly."""
    with memory.opened_memory(context) as claims:
        kept_name, other_name = _require_name(claims, kept), _require_name(claims, other)
        change = claims.merge(kept_name, other_name, by=by)
    _print_change(change, as_json, f"{other_name} is read as {kept_name}")


@memory.memories.command("unmerge")
def unmerge_name(
    context: typer.Context,
    other: str = argument("the name that was merged into another"),
    by: str = memory.BY_OPTION,
    as_json: bool = options.AS_JSON,
) -> None:
    """Undo the merge of a name."""
    with memory.opened_memory(context) as claims:
        name = decode_argument(other, "the name")
        change = claims.unmerge(name, by=by)
    _print_change(change, as_json, f"{name} is read as itself")


def _require_name(claims: Claims, text: str) -> str:
    """Return a name that occurs in some fact. Raises BadInput for any other, which is probably a typo."""
    name = decode_argument(text, "the name")
    if not any(name in (fact.subject, fact.object) for fact in claims.recorded_facts()):
        raise BadInput(f"no fact names {name!r}, so nothing was changed: `facts` shows the names")
    return name


def _print_change(change: int | None, as_json: bool, message: str) -> None:
    line = f"nothing was changed: {message} already" if change is None else f"change {change}: {message}"
    memory.print_result({"change": change}, as_json, [line])


def _iso_time(time: datetime | None) -> str | None:
    return time.isoformat() if time is not None else None
