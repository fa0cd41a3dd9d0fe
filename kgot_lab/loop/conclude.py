"""From rows to an answer: compute if needed, parse, choose, and say what the answer rests on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

from kgot_lab.errors import BadReply, QueryFailed
from kgot_lab.graph.provenance import HIDDEN, sentence_of
from kgot_lab.loop import prompts
from kgot_lab.loop.events import Answered, Computed, Cut, Forced, Parsed
from kgot_lab.loop.evidence import FoundSupports, evidence_of, passages_of
from kgot_lab.loop.prompts import Answer, Code, Needed, Number
from kgot_lab.loop.render import by_sentence, fit, joined_lines
from kgot_lab.loop.retrieve import Candidate
from kgot_lab.loop.run_context import Loop, Steps, ask_for, distinct, situation
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.tokens import shorten, tokens
from kgot_lab.text.words import plain_answer
from kgot_lab.types import Json, Rows

_COUNTING = re.compile(
    r"\b(how (many|much|old|long|far)|number of|total|sum|average|difference|percent|older|younger|earlier|later|more|fewer|less)\b",
    re.I,
)


def conclude(run: Loop, found: list[Candidate]) -> Steps[None]:
    """Answer from what was read; when nothing was, the model must guess, and the answer says so."""
    pooled = (
        [Candidate(tuple(row for candidate in found for row in candidate.rows))]
        if found and run.limits.pool
        else found
    )
    parsed: list[str] = []
    texts: list[str] = []
    for candidate in pooled:
        facts = yield from _facts(run, candidate)
        facts += yield from _computed(run, facts)
        texts.append(facts)
        parsed += yield from _parses(run, facts)
    if not parsed:
        yield from _guess(run)
        return
    chosen = yield from _choose(run, joined_lines(distinct(texts)), parsed)
    evidence = evidence_of(run, found, chosen)
    supports = tuple(map(FoundSupports(run.state).of, evidence))
    yield run.happened(
        Answered,
        text=chosen,
        forced=run.state.forced,
        evidence=tuple(fact_of(edge) for edge in evidence),
        supports=supports,
        passages=passages_of(supports),
    )


def _facts(run: Loop, candidate: Candidate) -> Steps[str]:
    """The rows as lines, the most relevant when they pass the budget, under the answer a ballot gave, if any."""
    lines = row_lines(candidate.rows)
    kept, left_out = fit(run.state.question, lines, run.limits.row_tokens)
    shown = [shorten(lines[number], run.limits.row_tokens) for number in kept]
    left_out += sum(max(0, tokens(lines[number]) - run.limits.row_tokens) for number in kept)
    if left_out:
        yield run.happened(Cut, what="rows", kept=sum(map(tokens, lines)) - left_out, left_out=left_out)
    facts = joined_lines(shown)
    return f"{facts}\n\nA first answer: {candidate.said}" if candidate.said else facts


def row_lines(rows: Rows) -> list[str]:
    """Rows as lines, triples from one sentence together."""

    def pair(row: Json) -> tuple[str, str]:
        sentence = sentence_of(row) if isinstance(row, dict) else ""
        return row_text({**row, "sentence": ""} if sentence else row), sentence

    return distinct(by_sentence(dict.fromkeys(map(pair, rows))))


def row_text(row: Json) -> str:
    """A row as one line: a triple with the sentence it came from, or plain JSON."""
    if isinstance(row, dict) and {"subject", "relation", "object"} <= row.keys():
        triple = f"{row['subject']} {row['relation']} {row['object']}"
        hidden = {"subject", "relation", "object", *HIDDEN}
        more = ", ".join(f"{name}: {value}" for name, value in row.items() if name not in hidden)
        said = sentence_of(row)
        return triple + (f" ({more})" if more else "") + (f' ("{said}")' if said else "")
    return row if isinstance(row, str) else json.dumps(row, ensure_ascii=False, default=str)


def _computed(run: Loop, facts: str) -> Steps[str]:
    """What Python makes of the facts, when they must be computed with; "" when not."""
    if run.compute is None or not _may_need_arithmetic(run, facts):
        return ""
    question = run.state.question
    try:
        if not (
            yield from ask_for(run, "arithmetic?", prompts.needs_arithmetic(question, facts), Needed)
        ).needed:
            return ""
        messages = prompts.arithmetic(question, facts)
        for mends in range(run.limits.repairs + 1):
            code = (yield from ask_for(run, "arithmetic", messages, Code, execution=True, seed=mends)).code
            try:
                output = run.compute(code).strip()
            except QueryFailed as error:
                yield run.happened(Computed, code=code, output=error.reason, failed=True)
                messages = prompts.mend_arithmetic(question, facts, code, error.reason)
            else:
                yield run.happened(Computed, code=code, output=output)
                return f"\nComputed: {output}" if output else ""
    except BadReply as error:
        yield run.happened(Computed, code=error.text[:500], output=error.reason, failed=True)
    return ""


def _may_need_arithmetic(run: Loop, facts: str) -> bool:
    if run.limits.arithmetic == "numbers":
        return bool(_COUNTING.search(run.state.question)) and len(re.findall(r"\d+", facts)) >= 2
    return run.limits.arithmetic == "always"


def _parses(run: Loop, facts: str) -> Steps[list[str]]:
    """Formatted answers: the first at the set temperature, the others sampled; stops when a majority agrees."""
    limits = run.limits
    possible = limits.parses if limits.temperatures.get("parse", limits.vote_temperature) > 0 else 1
    parsed: list[str] = []
    for number in range(possible):
        temperature = limits.vote_temperature if number else limits.temperature
        messages = prompts.answer(run.state.question, facts, limits.answer_format)
        try:
            text = (
                yield from ask_for(run, "parse", messages, Answer, temperature=temperature, seed=number)
            ).answer.strip()
        except BadReply as error:
            yield run.happened(Parsed, text="", problem=error.reason)
            continue
        yield run.happened(Parsed, text=text)
        if text:
            parsed.append(text)
        if parsed and Counter(map(plain_answer, parsed)).most_common(1)[0][1] * 2 > possible:
            break
    return parsed


def _choose(run: Loop, facts: str, parsed: Sequence[str]) -> Steps[str]:
    """One of the parsed answers: the only one, the most frequent (pool), or the one that the model picks."""
    counts = Counter(map(plain_answer, parsed))
    # the first spelling of each
    options = list({plain_answer(text): text for text in reversed(parsed)}.values())[::-1]
    if len(options) == 1:
        return options[0]
    most_common = max(options, key=lambda text: (counts[plain_answer(text)], -options.index(text)))
    if run.limits.pool:
        return most_common
    messages = prompts.choose(run.state.question, shorten(facts, run.limits.row_tokens), options)
    try:
        number = (yield from ask_for(run, "choose", messages, Number)).number
    except BadReply:
        return most_common  # the Asked event shows the reply that could not be used
    return options[number - 1] if 1 <= number <= len(options) else most_common


def _guess(run: Loop) -> Steps[None]:
    yield run.happened(Forced, what="answer")
    text = yield from situation(run)
    messages = prompts.guess(text, run.limits.answer_format)
    answer = (
        yield from ask_for(run, "guess", messages, Answer, temperature=run.limits.temperature)
    ).answer.strip()
    if not answer:
        raise BadReply(
            "the model gave an empty answer; try another model, or the preset made for small models", answer
        )
    yield run.happened(Answered, text=answer, forced=True)
