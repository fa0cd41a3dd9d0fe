"""`kgot-lab memory FILE`: inspect, retract, undo and erase claims, and the memory of a question."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.options import argument, option
from kgot_lab.errors import BadInput, mask_secrets
from kgot_lab.text.cleaning import decode_argument, format_count, printable_line
from kgot_lab.types import Triple

if TYPE_CHECKING:
    from kgot_lab.cli.configuration import Configuration
    from kgot_lab.loop.persistence import MemorySession
    from kgot_lab.memory.claims.claim import Claim
    from kgot_lab.memory.claims.claims import Claims
    from kgot_lab.memory.user_memory import Added, Memory
    from kgot_lab.stores.tables.history import ChangeEffect, ChangeLogEntry, RecordedAnswer

BY_COMMAND = "command line"
BY_OPTION = option("who decides, for the log", "--by", default=BY_COMMAND)
_ID_PREFIX = re.compile(r"[0-9a-f]{6,32}")
ID_PREFIX_LENGTH = 8  # characters of an id, which name a fact or a claim where no other begins so
_DRAWN_FACT = re.compile(r"(.+?) --\[(.+)\]--> (.+)", re.S)

memories = typer.Typer(help="Show and change a memory of claims.", no_args_is_help=True)

_FACT_OPTION = option('"SUBJECT | RELATION | OBJECT", or the beginning of its id', "--fact")
_SOURCE_OPTION = option("every claim of this source: the id of a document", "--source")


# --- with a question ---


def question_memory(
    configuration: Configuration, question: str
) -> AbstractContextManager[MemorySession | None]:
    """Open the memory of a question, or that of a user for it, or return a context of None if it has none.

    Raises BadInput and StoreUnavailable before a model is called.
    """
    from kgot_lab.loop.persistence import open_memory_session

    if configuration.memory is None:
        if configuration.as_of is not None or configuration.user is not None:
            raise BadInput("--as-of is a time of a memory, and --user its user: name it with --memory FILE")
        return nullcontext()
    if configuration.store.graph is not None or configuration.store.keep:
        raise BadInput("a question begins with --memory, or with --graph or a kept store: leave one out")
    time = None if configuration.as_of is None else parse_time(configuration.as_of)
    return open_memory_session(configuration.memory, question, at=time, user=configuration.user)


def print_initial_graph(memory: MemorySession, where: str | None) -> None:
    """Say how much of the memory the question begins with."""
    ending = ", and nothing is learnt" if memory.looks_only else ""
    terminal.say(f"memory {where}: the question begins with {memory.begun}{ending}")


def parse_time(text: str) -> datetime:
    """Parse a time argument, in UTC if it names no time zone. Raises BadInput for an invalid one."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadInput(f"a time is such as 2026-11-23 or 2026-11-23T14:30+01:00, not {text!r}") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


# --- commands ---


@memories.callback()
def select_memory(
    context: typer.Context,
    file: str = argument("a file of claims, made by `ask --memory FILE` or `add`, or postgresql://HOST/NAME"),
) -> None:
    """Inspect and change a memory of claims. Every change has a number, by which it can be undone."""
    context.obj = file


_USER_OPTION = option("whose memory; users of one file do not see each other", "--user", default="user")
_ONE_USER = option("only what this user said; by default the whole file", "--user")


@memories.command("add")
def add_message(
    context: typer.Context,
    text: str = argument("what the user says"),
    user: str = _USER_OPTION,
    at: str | None = option("when it was said, such as 2026-11-23; by default now"),
    as_json: bool = options.AS_JSON,
) -> None:
    """Add what a user says, and list the facts learned from it and those that it ended."""
    time = None if at is None else parse_time(at)
    with _open_user_memory(context, user, new=True) as memory:
        _print_added(memory.add(decode_argument(text, "the message"), at=time), as_json)


@memories.command("correct")
def correct_fact(
    context: typer.Context,
    fact: str = argument('"SUBJECT | RELATION | OBJECT", or the beginning of the id that `facts` shows'),
    object: str = argument("the right object"),
    user: str = _USER_OPTION,
    as_json: bool = options.AS_JSON,
) -> None:
    """Replace the object of a fact that a user stated, from its first day. `undo` reverses it."""
    with _open_user_memory(context, user) as memory:
        known = _find_fact(memory.claims, fact)
        _print_added(memory.correct(known, decode_argument(object, "the object")), as_json)


def _print_added(added: Added, as_json: bool) -> None:
    facts = {"facts": [*map(fact_to_json, added.facts)], "ended": [*map(fact_to_json, added.ended)]}
    print_result(vars(added) | facts, as_json, str(added).splitlines())


@memories.command("recall")
def recall_sentences(
    context: typer.Context,
    question: str = argument("what is asked"),
    user: str = _USER_OPTION,
    as_of: str | None = options.AS_OF,
    tokens: int = option("at most about so many tokens", "--tokens", default=300),
    as_json: bool = options.AS_JSON,
) -> None:
    """Recall what a user said that is relevant to a question, best first, as text for a prompt."""
    at = None if as_of is None else parse_time(as_of)
    with _open_user_memory(context, user, embedder="minilm") as memory:
        found = memory.recall(decode_argument(question, "the question"), at=at, tokens=tokens)
    facts = ({"facts": [*map(fact_to_json, r.facts)], "ended": [*map(fact_to_json, r.ended)]} for r in found)
    rows = [recalled._asdict() | of_it for recalled, of_it in zip(found, facts, strict=True)]
    print_result(rows, as_json, (each.line for each in found))


@memories.command("facts")
def list_facts(
    context: typer.Context,
    about: str | None = option("only facts with this name as subject or object"),
    user: str | None = _ONE_USER,
    as_of: str | None = options.AS_OF,
    as_json: bool = options.AS_JSON,
) -> None:
    """List the current facts, with confidence and sources. For users' sentences see `recall`."""
    from kgot_lab.memory.claims.claim import fact_id, is_message
    from kgot_lab.memory.claims.justification import combined_confidence

    at = None if as_of is None else parse_time(as_of)
    name = None if about is None else decode_argument(about, "the name")
    memory = None if user is None else _open_user_memory(context, user)
    with opened_memory(context) if memory is None else memory.claims as claims:
        if memory is not None:
            facts = [fact for fact in memory.facts(at) if name in (None, fact.subject, fact.object)]
            found = claims.claims_of(facts)
        else:
            beliefs = claims.as_of(at, at if at is not None else claims.now())
            held = beliefs.facts() if name is None else (*beliefs.facts(name), *beliefs.facts(object=name))
            found = beliefs.claims_of(dict.fromkeys(held))
    rows = [
        {"id": fact_id(fact), **fact_to_json(fact), "confidence": round(combined_confidence(by), 3)}
        | {"sources": list(dict.fromkeys(claim.source for claim in by))}
        for fact, by in found.items()
        if not is_message(by[0].fact, by[0].source)
    ]

    def line(row: dict[str, Any]) -> str:
        return f"{row['id'][:ID_PREFIX_LENGTH]}  {row['confidence']:.2f}  {format_fact_row(row)}  [{', '.join(row['sources'])}]"

    print_result(rows, as_json, map(line, rows))
    terminal.say(format_count(len(rows), "fact"))


@memories.command("why")
def explain_fact(
    context: typer.Context,
    fact: str = argument('"SUBJECT | RELATION | OBJECT", or the beginning of the id that `facts` shows'),
    as_json: bool = options.AS_JSON,
) -> None:
    """Show why a fact is believed.

    Shows its claims, their sources and readers, since when it holds, and which answers rest on it.
    """
    with opened_memory(context) as claims:
        triple = _find_fact(claims, fact)
        rows: list[dict[str, Any]] = [
            {
                "claim": claim.id, "source": claim.source, "sentence": claim.span.text if claim.span else "",
                "start": claim.span.start if claim.span else None, "end": claim.span.end if claim.span else None,
                "said_by": claim.said_by, "confidence": claim.confidence, "since": claims.history(claim.id)[0].known_from.isoformat(),
            }
            for claim in claims.supports_of(triple)
        ]  # fmt: skip
        supporting = {row["claim"] for row in rows}
        others = [
            {"claim": claim.id, "source": claim.source, "sentence": claim.span.text if claim.span else ""}
            | {"state": _claim_state(claims, claim)}
            for claim in claims.claims_on(triple)
            if claim.id not in supporting
        ]
        answers = claims.answers_on(triple)
        is_recorded = bool(rows) or triple in claims.recorded_facts()
    result = {"holds": bool(rows), "claims": rows, "others": others}
    result["answers"] = list(map(_answer_to_json, answers))
    state = "" if rows else "   (does not hold)" if is_recorded else "   (nothing is known of it)"
    lines = [f"{triple}{state}"]
    for row in rows:
        reader = f", read by {row['said_by']}" if row["said_by"] else ""
        known = f"{row['confidence']:.2f}{reader}, known since {row['since'][:16]}"
        lines.append(f"  {row['source']} “{row['sentence']}” ({known})")
    lines += (f"  {row['source']} “{row['sentence']}” ({row['state']})" for row in others)
    lines += (f"  an answer rests on it: {answer.id} {answer.text}" for answer in answers)
    print_result(fact_to_json(triple) | result, as_json, lines)


def _claim_state(claims: Claims, claim: Claim) -> str:
    """Return why a claim supports no fact: who retracted or rejected it and when, or what it says."""
    last = claims.history(claim.id)[-1]
    if last.known_until is not None:
        return f"taken back on {last.known_until:%Y-%m-%d at %H:%M} UTC"
    words = {"dropped": "retracted", "queued": "waits for review"}
    if last.standing not in ("taken", "accepted"):
        author = f" by {last.by}" if last.by and last.standing != "queued" else ""
        return f"{words.get(last.standing, last.standing)}{author} {last.known_from:on %Y-%m-%d at %H:%M} UTC"
    if claim.kind == "ended" and claim.valid_from is not None:
        return f"says that it ended on {claim.valid_from:%Y-%m-%d}"
    return "a premise of it does not hold"


@memories.command("retract")
def retract_claims(
    context: typer.Context,
    source: str | None = _SOURCE_OPTION,
    fact: str | None = _FACT_OPTION,
    as_json: bool = options.AS_JSON,
) -> None:
    """Retract a source or a fact, and list what no longer holds without it. `undo` reverses it."""
    with opened_memory(context) as claims:
        id, by = _find_what(claims, source, fact), BY_COMMAND
        effects = claims.retract_source(id, by=by) if isinstance(id, str) else claims.retract_fact(id, by=by)
    if effects.change is None:
        terminal.say("nothing was changed: it is retracted already")
    print_effects(effects, as_json)


@memories.command("forget")
def forget_messages(
    context: typer.Context,
    text: str | None = argument("words of one message", None),
    source: str | None = _SOURCE_OPTION,
    fact: str | None = _FACT_OPTION,
    user: str = _USER_OPTION,
    as_json: bool = options.AS_JSON,
) -> None:
    """Forget the messages of a user that state a fact, or one message. `undo` reverses it."""
    with _open_user_memory(context, user) as memory:
        effects = memory.forget(_find_said(memory, text, source, fact))
    print_effects(effects, as_json)


@memories.command("undo")
def undo_change(
    context: typer.Context,
    number: int = argument("of a change, as `log` lists them"),
    user: str | None = _ONE_USER,
    as_json: bool = options.AS_JSON,
) -> None:
    """Undo a change, or an undo."""
    with opened_memory(context, user) as claims:
        effects = claims.undo(number, by=user or BY_COMMAND)
    print_effects(effects, as_json)


@memories.command("log")
@memories.command("history")
def list_changes(
    context: typer.Context, user: str | None = _ONE_USER, as_json: bool = options.AS_JSON
) -> None:
    """List every change with its number, time, author and kind."""
    with opened_memory(context, user) as claims:
        print_log(claims.log(), as_json)


def print_log(changes: Iterable[ChangeLogEntry], as_json: bool) -> None:
    """Print changes, as JSON or a line each."""
    changes = list(changes)
    rows = [
        {"change": change.change, "at": change.at.isoformat(), "by": change.by, "action": change.action}
        | {"of": list(change.of), "undoes": change.undoes, "erased": change.erased}
        for change in changes
    ]
    print_result(rows, as_json, map(str, changes))


def print_effects(effects: ChangeEffect, as_json: bool) -> None:
    """Print the effects of a change, as JSON or a line each."""
    print_result(effects_to_json(effects), as_json, effect_lines(effects))


@memories.command("erase")
def erase_claims(
    context: typer.Context,
    text: str | None = argument("a whole sentence of one message of --user", None),
    source: str | None = _SOURCE_OPTION,
    fact: str | None = _FACT_OPTION,
    user: str | None = option("only what this user said: without --source and --fact all of it"),
    yes: bool = option("do not ask for confirmation", "--yes", default=False),
    as_json: bool = options.AS_JSON,
) -> None:
    """Erase a source, a fact with the answers that rested on it, or all of a user, for good: there is no undo."""
    if text is not None and user is None:
        raise BadInput("a sentence names a message of one user: name the user too, with --user NAME")
    memory = None if user is None else _open_user_memory(context, user, embedder="minilm")
    with opened_memory(context) if memory is None else memory.claims as claims:
        what: Triple | str | None = None
        if memory is None:
            what = _find_what(claims, source, fact)
        elif not (source is fact is text is None):
            what = _find_said(memory, text, source, fact, whole=True)
        if isinstance(what, str):
            description, stating = f"the source {what}", claims.from_source(what)
        else:
            description, stating = f"the fact {what}", claims.claims_on(what) if what else ()
        runs = _learning_runs(claims, stating)
        of_user = f"{description if what else 'everything'} that {user} said"
        question = f"Erase {of_user if user else description} from {mask_secrets(context.obj)} for good?"
        if not yes and not typer.confirm(printable_line(question), err=True):
            raise BadInput("nothing was erased")
        if memory is not None:
            erased = memory.erase(what)
        elif isinstance(what, str):
            erased = claims.erase_source(what, by=BY_COMMAND)
        elif what is not None:
            erased = claims.erase_fact(what, by=BY_COMMAND)
    counts = {"facts": erased.facts, "claims": erased.claims, "answers": erased.answers}
    if memory is not None and not any(counts.values()):
        raise BadInput(
            f"{mask_secrets(context.obj)} holds nothing that {user} said: see that the name is right"
        )
    summary = ", ".join(format_count(number, what.removesuffix("s")) for what, number in counts.items())
    result = {"change": erased.change, **counts, "runs": runs}
    print_result(result, as_json, [f"erased: {summary}"])
    if runs:
        terminal.say(
            f"its text may still be in the traces and recordings of {', '.join(runs)}: delete those too"
        )


# --- shared ---


def opened_memory(context: typer.Context, user: str | None = None) -> Claims:
    """Open the memory that a command names, or what one user said in it.

    Raises BadInput if the file is no memory.
    """
    from kgot_lab.memory.claims.claims import open_claims

    return open_claims(context.obj, new=False) if user is None else _open_user_memory(context, user).claims


def _open_user_memory(
    context: typer.Context, user: str, *, new: bool = False, embedder: str | None = None
) -> Memory:
    from kgot_lab.memory.user_memory import open_memory

    memory = open_memory(context.obj, user=decode_argument(user, "the user"), embedder=embedder, new=new)
    if not new and not memory.claims.sources():
        terminal.say(f"{user!r} has said nothing in {mask_secrets(context.obj)}")
    return memory


def _find_said(
    memory: Memory, text: str | None, source: str | None, fact: str | None, *, whole: bool = False
) -> Triple | str:
    """Return the source or the fact that is named, or the source of the message with the words of a text."""
    if text is None or source is not None or fact is not None:
        return _find_what(memory.claims, source if text is None else source or text, fact or text)
    return memory.source_of(decode_argument(text, "the text"), whole=whole)


def _find_what(claims: Claims, source: str | None, fact: str | None) -> Triple | str:
    """Return the source or the fact that is named, whether or not it holds.

    Raises BadInput unless it is one of them, and was ever recorded.
    """
    if (source is None) == (fact is None):
        raise BadInput("say what is meant: --source ID or --fact FACT, one of them")
    if fact is None:
        return _find_source(claims, source or "")
    triple = _find_fact(claims, fact)
    if claims.canonical_fact(triple) not in set(map(claims.canonical_fact, claims.recorded_facts())):
        raise BadInput(f"nothing is known of {triple}, so nothing was changed: `facts` lists what holds")
    return triple


def _find_fact(claims: Claims, text: str) -> Triple:
    """Find a fact by its three parts or the beginning of its id, among all that were ever recorded.

    Raises BadInput unless exactly one fact matches.
    """
    from kgot_lab.memory.claims.claim import fact_id

    text = decode_argument(text, "the fact").strip()
    if drawn := _DRAWN_FACT.fullmatch(text):
        return Triple(drawn[1], drawn[2], drawn[3])
    parts = [part.strip() for part in text.split("|")]
    if len(parts) == 3 and all(parts):
        return Triple(parts[0], parts[1], parts[2])
    found = []
    if _ID_PREFIX.fullmatch(text):
        found = [fact for fact in claims.recorded_facts() if fact_id(fact).startswith(text)]
    if len(found) != 1:
        many = (
            f"{len(found)} facts have an id that begins with {text}"
            if found
            else f"no fact is called {text!r}"
        )
        advice = 'name one as "SUBJECT | RELATION | OBJECT", or by more characters of its id'
        raise BadInput(f"{many}: {advice}, as `facts` shows it")
    return found[0]


def _learning_runs(claims: Claims, erased: Iterable[Claim]) -> list[str]:
    """Return the runs that learnt some claims, in order. Their own traces are not part of the memory."""
    authors = dict.fromkeys(version.by for claim in erased for version in claims.history(claim.id))
    return [author for author in authors if author.startswith("run ")]


def _find_source(claims: Claims, text: str) -> str:
    """Return the name of a source.

    Raises BadInput for an unknown one, with its passages or similar names.
    """
    name, known = decode_argument(text, "the source"), claims.sources()
    if name in known:
        return name
    passages = [source for source in known if source.startswith(f"{name}#")]
    suggestions = passages or get_close_matches(name, known, n=3)
    advice = ""
    if passages:
        advice = f"; its passages are sources: {', '.join(suggestions)}"
    elif suggestions:
        advice = f"; near it is {' or '.join(suggestions)}"
    changed = f"nothing was learnt from {name!r}, so nothing was changed"
    raise BadInput(f"{changed}{advice}. `kgot-lab memory FILE facts` names the sources")


def effects_to_json(effects: ChangeEffect) -> dict[str, Any]:
    """Convert the effects of a change to plain JSON values."""
    facts = {"fallen": [*map(fact_to_json, effects.facts)], "risen": [*map(fact_to_json, effects.risen)]}
    answers = list(map(_answer_to_json, effects.answers))
    queue = {"waits": effects.waits, "withdrawn": effects.withdrawn}
    return {"change": effects.change, **facts, "answers": answers, **queue}


def _answer_to_json(answer: RecordedAnswer) -> dict[str, str]:
    return {"question": answer.id, "answer": answer.text, "at": answer.at.isoformat()}


def effect_lines(effects: ChangeEffect) -> Iterator[str]:
    """Format the effects of a change as printable lines."""
    number = f"change {effects.change}: " if effects.change is not None else ""
    yield f"{number}{effects}"
    for what, facts in (("fell", effects.facts), ("holds", effects.risen)):
        yield from (printable_line(f"  {what}: {fact}") for fact in facts)
    yield from (printable_line(f"  an answer rested on it: {a.id} {a.text}") for a in effects.answers)


def fact_to_json(fact: Triple) -> dict[str, str]:
    """Convert a fact to a dict of its three parts."""
    return {"subject": fact.subject, "relation": fact.relation, "object": fact.object}


def format_fact_row(row: dict[str, Any]) -> str:
    """Format the fact of a row as facts are shown."""
    return str(Triple(row["subject"], row["relation"], row["object"]))


def print_result(value: object, as_json: bool, lines: Iterable[str]) -> None:
    """Print a result as one JSON value, or as lines, which no text in them can break."""
    for line in [json.dumps(value)] if as_json else map(printable_line, lines):
        typer.echo(line)


# `kgot-lab certify TRACE` and `kgot-lab memory FILE answers`: whether the evidence of answers holds.


def certify_run(
    trace: Path = argument("the trace of a run that has its answer"), as_json: bool = options.AS_JSON
) -> None:
    """Certify the answer of a run.

    Shows the facts it needs, the sentences that support them, weak points, and the verdict.
    """
    from kgot_lab.loop.certificate import certificate_of_run
    from kgot_lab.loop.trace import load_run
    from kgot_lab.memory.claims.certificate import certificate_to_json

    run = load_run(trace)
    certificate_json = certificate_to_json(run.question, run.answer, certificate_of_run(run))
    print_result(certificate_json, as_json, terminal.certificate_lines(certificate_json))


@memories.command("answers")
def list_answers(
    context: typer.Context, as_of: str | None = options.AS_OF, as_json: bool = options.AS_JSON
) -> None:
    """List the recorded answers, each with its certificate.

    It shows whether the facts that the answer rests on still hold, and by which sources.
    """
    from kgot_lab.memory.claims.certificate import certificate_to_json, certify

    with opened_memory(context) as claims, claims.storage.reading():
        at = None if as_of is None else parse_time(as_of)
        beliefs = claims.as_of(at, at) if at is not None else claims
        answers = claims.recorded_answers().items()
        recorded = [(answer, facts) for answer, facts in answers if at is None or answer.at <= at]
        rows = [
            certificate_to_json(a.id, a.text, certify(beliefs, facts, at=at)) | {"at": a.at.isoformat()}
            for a, facts in recorded
        ]
    print_result(rows, as_json, chain.from_iterable(map(terminal.certificate_lines, rows)))
    if as_json:
        return
    rulings = [row["ruling"] for row in rows]
    counts = [f"{rulings.count(ruling)} {ruling}" for ruling in ("passes", "hedged", "withheld")]
    terminal.say(f"{format_count(len(rows), 'answer')}: {', '.join(counts)}")
