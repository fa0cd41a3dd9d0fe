"""Score the answers of all systems: right, declined, tokens, seconds, memory, and differences to kgot_lab's paths.

python -m benchmarks.rivals.score    # the tables, from the rows in benchmarks/results/rivals
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import Any

from benchmarks.rivals.endpoint import INDEX, read_rows
from benchmarks.rivals.questions import Asked, choose
from benchmarks.rivals.run import RESULTS
from benchmarks.rivals.systems import SYSTEMS, adapter_lines
from kgot_lab.evaluation.grading import contains_answer, exact_match, f1
from kgot_lab.evaluation.significance import holm, interval, proportion, sign_flip_p
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal

BASELINE = "paths"
Row = dict[str, Any]

# Declining: the same rule for all, applied to the first two sentences of an answer without its headings.
_NOTHING = re.compile(
    r"^\W*(?:(?:the answer|it) is )?(?:unknown|none|null|n/?a|not (?:stated|specified|given|available))\W*$",
    re.I,
)
_DECLINES = re.compile(
    r"\b(?:do|does|did|is|are|was|were|has|have|can|could)(?: ?not|n['’]t)(?: \w+){0,2} (?:say|state|mention|specify|specified|contain|"
    r"include|provide|provided|mentioned|stated|given|indicate|address|know|find|determine|answer|have)\b"
    r"|\b(?:cannot|can['’]?t|unable to|not able to) (?:be )?(?:answer\w*|determine\w*|find|found|provide|say|tell)\b"
    r"|\b(?:no|insufficient|not enough|lacks?|without) (?:\w+ ){0,3}"
    r"(?:information|data|details?|mention|evidence|context|answer|reference|record)\b"
    r"|\b(?:I['’]m|I am|we are)? ?sorry\b|\[no-context\]|\bunknown\b\W*$",
    re.I,
)  # fmt: skip
_HEADING = re.compile(r"^\s*(?:#+.*|\*\*[^*]+\*\*:?|[-=*_]{3,})\s*$", re.M)


def declines(answer: str) -> bool:
    """Return whether an answer says that the documents do not say it, in its first two sentences."""
    body = _HEADING.sub("", answer).strip()
    start = " ".join(re.split(r"(?<=[.!?])\s+|\n+", body)[:2])
    return not start or bool(_NOTHING.match(start) or _DECLINES.search(start))


def judge(question: Asked, row: Row) -> Row:
    """Return the scores of an answer."""
    answer = str(row.get("answer", ""))
    best: Callable[[Callable[[str, str], float]], float] = lambda by: max(  # noqa: E731
        (float(by(answer, gold)) for gold in question.answers), default=0.0
    )
    held = declines(answer)
    unsure = held or str(row.get("outcome", "")) in ("unsure", "not in the sources")
    return {
        **row, "said": question.said, "f1": best(f1), "em": best(exact_match), "contained": best(contains_answer),
        "answered": not held, "claimed": not unsure,
    }  # fmt: skip


def measures(rows: Sequence[Row], index: Row, name: str) -> dict[str, str]:
    """Return the measures of a system by name, as texts."""
    said, unsaid = [row for row in rows if row["said"]], [row for row in rows if not row["said"]]
    made = ", ".join(f"{key} {value}" for key, value in (index.get("made") or {}).items())
    failed = [row["error"] for row in rows if row["error"]]
    told = {
        "questions (said / not said)": f"{len(said)} / {len(unsaid)}",
        "F1": _interval(said, "f1"),
        "exact match": _interval(said, "em"),
        "gold answer contained": _interval(said, "contained"),
        "words of an answer, median": f"{median(len(row['answer'].split()) for row in rows):.0f}",
        "not said, answered all the same": _share(unsaid, "answered"),
        "not said, told without a doubt": _share(unsaid, "claimed"),
        "said, declined": _share([{**row, "no": not row["answered"]} for row in said], "no"),
        "index: calls, tokens read, written": f"{index['calls']}, {index['read']:,}, {index['written']:,}",
        "index: minutes": f"{index['seconds'] / 60:.1f}",
        "index: made": made or "–",
        "a question: calls, mean": f"{mean(row['calls'] for row in rows):.1f}",
        "a question: tokens read, written, mean": f"{mean(row['read'] for row in rows):,.0f}, {mean(row['written'] for row in rows):,.0f}",
        "a question: seconds, median": f"{median(row['seconds'] for row in rows):.1f}",
        "peak memory, MB, without the model": f"{max(row['peak'] for row in [index, *rows]) / 1e6:,.0f}",
        "lines of its adapter": f"{adapter_lines(name)}",
        "replies cut off; calls refused": f"{_total(rows, index, 'cut')}; {_total(rows, index, 'refused')}",
        "failed questions": f"{len(failed)}" + (f": {failed[0][:80]}" if failed else ""),
    }
    return told


def _interval(rows: Sequence[Row], key: str) -> str:
    if len(rows) < 2:
        return "–"
    found = interval([row[key] for row in rows])
    return f"{format_decimal(found.mean)} [{format_decimal(found.low)}, {format_decimal(found.high)}]"


def _share(rows: Sequence[Row], key: str) -> str:
    found = proportion(sum(bool(row[key]) for row in rows), len(rows))
    return f"{format_decimal(found.mean)} [{format_decimal(found.low)}, {format_decimal(found.high)}]"


def _total(rows: Sequence[Row], index: Row, key: str) -> int:
    return sum(row.get(key, 0) for row in [index, *rows])


def differences(judged: dict[str, list[Row]]) -> list[tuple[str, ...]]:
    """Return paired differences of each system to the baseline, on the questions that both answered.

    p is corrected by Holm's method over all systems and measures.
    """
    base = {row["id"]: row for row in judged.get(BASELINE, [])}
    found, ps = [], []
    for name, rows in judged.items():
        for key, said in (("f1", True), ("contained", True), ("answered", False), ("claimed", False)):
            gaps = [
                float(row[key]) - float(base[row["id"]][key])
                for row in rows if row["id"] in base and row["said"] is said
            ]  # fmt: skip
            if name == BASELINE or len(gaps) < 2:
                continue
            gap = interval(gaps)
            ps.append(sign_flip_p(gaps))
            signs = (f"{value:+.3f}" for value in (gap.mean, gap.low, gap.high))
            found.append((name, key, "{} [{}, {}]".format(*signs), str(len(gaps))))
    return [(*row, f"{p:.3f}") for row, p in zip(found, holm(ps), strict=True)] if ps else []


def main() -> None:
    """Print the tables."""
    by_id = {question.id: question for question in choose().questions}
    columns: dict[str, dict[str, str]] = {}
    judged: dict[str, list[Row]] = {}
    for name, system in SYSTEMS.items():
        rows = read_rows(RESULTS / f"{name}.jsonl")
        index = next((row for row in rows if row["id"] == INDEX), None)
        answered = [judge(by_id[row["id"]], row) for row in rows if row["id"] in by_id]
        if index is None:
            continue
        if index["error"] or not answered:
            columns[system.title] = {"questions (said / not said)": f"index: {index['error'] or 'done'}"}
            continue
        judged[name] = answered
        columns[system.title] = measures(answered, index, name)
    names = list(dict.fromkeys(name for told in columns.values() for name in told))
    table = tuple(
        tuple(map(Cell, (name, *(told.get(name, "–") for told in columns.values())))) for name in names
    )
    print(Grid("All systems", ("", *columns), table).markdown)
    heads = ("system", "measure", f"difference to {BASELINE} [95 %]", "questions", "p Holm")
    rows_of_pairs = tuple(tuple(map(Cell, row)) for row in differences(judged))
    print(Grid(f"Paired differences to {BASELINE}", heads, rows_of_pairs).markdown)


if __name__ == "__main__":
    main()
