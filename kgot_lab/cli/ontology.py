"""`kgot-lab memory FILE relations`, `declare`, `changes`, `names`, `merge` and `unmerge`: what relations and
names of a memory mean.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.memory import BY_COMMAND, memory_opened, parse_time, print_rows
from kgot_lab.errors import BadInput
from kgot_lab.text.counted import counted
from kgot_lab.text.harmless import harmless
from kgot_lab.text.surrogates import as_typed

if TYPE_CHECKING:
    from kgot_lab.memory.claims.claim import Cardinality
    from kgot_lab.memory.claims.claims import Claims

_Relation = Annotated[str, typer.Argument(help="a relation, as `facts` shows it")]
_By = Annotated[str, typer.Option("--by", help="who says so, for the log")]


def list_relations(context: typer.Context, as_json: options.AsJson = False) -> None:
    """List the relations: which are declared to have a single object at one time, or many, and what the facts
    suggest of the others.
    """
    with memory_opened(context) as claims:
        declared, suggested = claims.declared(), claims.suggested_cardinalities()
    rows: list[dict[str, Any]] = [
        {"relation": relation, "declared": cardinality, "suggested": None, "subjects": None, "several": None}
        for relation, cardinality in sorted(declared.items())
    ]
    rows += [
        {
            "relation": each.relation,
            "declared": None,
            "suggested": each.cardinality,
            "subjects": each.subjects,
            "several": each.several,
        }
        for each in suggested
    ]

    def line(row: dict[str, Any]) -> str:
        if row["declared"]:
            return f"{row['relation']}: declared {row['declared']}"
        return f"{row['relation']}: {row['suggested']}? {row['several']} of {counted(row['subjects'], 'subject')} with several objects"

    print_rows(rows, as_json, line)
    terminal.say(
        f"{counted(len(rows), 'relation')}; what is suggested counts for nothing before it is declared"
    )


def declare_relation(
    context: typer.Context,
    relation: _Relation,
    cardinality: Annotated[
        str, typer.Argument(help="single: one object at a time, the one that began last; or many")
    ],
    by: _By = BY_COMMAND,
    as_json: options.AsJson = False,
) -> None:
    """Declare a relation single (one object at a time; the later fact answers, the earlier stays on
    record) or many.
    """
    with memory_opened(context) as claims:
        name = as_typed(relation, "the relation")
        change = claims.declare(name, cast("Cardinality", cardinality), by=by)
        known = any(fact.relation == name for fact in claims.recorded_facts())
    _tell_change(change, as_json, f"{name} is {cardinality}")
    if not known:
        terminal.say(f"note: no fact has the relation {name!r} yet")


def tell_changes(
    context: typer.Context,
    subject: Annotated[str, typer.Argument(help="what is asked about")],
    relation: _Relation,
    as_of: options.AsOf = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the current and past objects of a subject and relation, with their times and whether they are
    contested.
    """
    with memory_opened(context) as claims:
        at = None if as_of is None else parse_time(as_of)
        beliefs = claims if at is None else claims.as_of(at)
        periods = beliefs.changes_of(as_typed(subject, "the subject"), as_typed(relation, "the relation"))
        now = at if at is not None else claims.now()
    rows = [
        {
            "objects": [fact.object for fact in each.facts],
            "from": _spelled(each.since),
            "until": _spelled(each.until),
            "contested": each.contested,
            "now": (each.since is None or each.since <= now) and (each.until is None or now < each.until),
        }
        for each in periods
        if each.facts
    ]

    def line(row: dict[str, Any]) -> str:
        ends = [f"{word} {row[word][:10]}" for word in ("from", "until") if row[word]]
        told = f"{'; '.join(row['objects'])}   {' '.join(ends) or 'at any time'}"
        return f"{'*' if row['now'] else ' '} {told}{'   contested' if row['contested'] else ''}"

    print_rows(rows, as_json, line)
    if not rows:
        terminal.say("nothing is known of that; a name or a relation is spelled as `facts` shows it")


def list_names(context: typer.Context, as_json: options.AsJson = False) -> None:
    """List the names that were merged, and pairs of names that may mean one thing, each with the reasons;
    none is merged by itself.
    """
    with memory_opened(context) as claims:
        merged, proposed = claims.names().merges, claims.propose_merges()
    rows: list[dict[str, Any]] = [
        {"kept": kept, "other": other, "merged": True, "reasons": []}
        for other, kept in sorted(merged.items())
    ]
    rows += [
        {"kept": each.kept, "other": each.other, "merged": False, "reasons": list(each.reasons)}
        for each in proposed
    ]

    def line(row: dict[str, Any]) -> str:
        if row["merged"]:
            return f"{row['other']} is read as {row['kept']}"
        return f"merge {row['kept']!r} {row['other']!r}?   {'; '.join(row['reasons'])}"

    print_rows(rows, as_json, line)
    terminal.say(f"{len(merged)} merged, {len(proposed)} proposed")


def merge_names(
    context: typer.Context,
    kept: Annotated[str, typer.Argument(help="the name that stays")],
    other: Annotated[str, typer.Argument(help="the name that is read as it from now on")],
    by: _By = BY_COMMAND,
    as_json: options.AsJson = False,
) -> None:
    """Merge a name into another; facts keep their own names, so `unmerge` undoes it exactly."""
    with memory_opened(context) as claims:
        one, two = _named(claims, kept), _named(claims, other)
        change = claims.merge(one, two, by=by)
    _tell_change(change, as_json, f"{two} is read as {one}")


def unmerge_name(
    context: typer.Context,
    other: Annotated[str, typer.Argument(help="the name that was merged into another")],
    by: _By = BY_COMMAND,
    as_json: options.AsJson = False,
) -> None:
    """Undo the merge of a name."""
    with memory_opened(context) as claims:
        name = as_typed(other, "the name")
        change = claims.unmerge(name, by=by)
    _tell_change(change, as_json, f"{name} is read as itself")


def _named(claims: Claims, text: str) -> str:
    """A name that some fact has; raises BadInput for another, which would be a slip."""
    name = as_typed(text, "the name")
    if not any(name in (fact.subject, fact.object) for fact in claims.recorded_facts()):
        raise BadInput(
            f"no fact names {name!r}, so nothing was changed: `kgot-lab memory FILE facts` shows the names"
        )
    return name


def _tell_change(change: int | None, as_json: bool, told: str) -> None:
    if as_json:
        typer.echo(json.dumps({"change": change}))
    else:
        typer.echo(
            harmless(
                f"change {change}: {told}" if change is not None else f"nothing was changed: {told} already"
            )
        )


def _spelled(time: datetime | None) -> str | None:
    return time.isoformat() if time is not None else None
