"""Score the runs of `benchmarks.own_folders.run`: answers kept, answers not said, citations, certificates, calls.

python -m benchmarks.own_folders.score own-folders test          the tables, from the rows kept in benchmarks/results
python -m benchmarks.own_folders.score own-folders test --score  score the traces in runs/own_folders, and keep the rows
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.calibration import risk_area
from benchmarks.own_folders.run import RUNS, SYSTEMS, Row, load_rows
from benchmarks.roc import roc_area
from kgot_lab.benchmark.questions.attempt import read_events
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal
from kgot_lab.io.files import write_atomically
from kgot_lab.loop.answer_check import support_score
from kgot_lab.loop.certificate import certificate_of_run
from kgot_lab.loop.events import Answered, Asked
from kgot_lab.loop.modes.paths.values import is_no_answer
from kgot_lab.text.words import contains_words, name_units

_CITATIONS = ("cited", "cited_gold", "gold", "gold_cited")
RESULTS = Path(__file__).parents[1] / "results" / "own_folders"
CLAIMED = ("supported", "not checked")  # outcomes of an answer that is not shown as a guess
_EXTRA_WORDS = 6  # words that a right answer may have beside an accepted form


def score_run(row: Row, path: Path) -> Row:
    """Return what a finished run gave: outcome, whether the answer is right, score, calls and citations."""
    events = read_events(path)
    end = next(event for event in reversed(events) if isinstance(event, Answered))
    calls = [event for event in events if isinstance(event, Asked)]
    checks = [event for event in calls if event.role == "check"]
    reading = next(
        (event for event in reversed(calls) if event.role in ("path", "wide", "reread", "answer")), None
    )
    likelihood = end.likelihood
    if likelihood is None and reading is not None and reading.logprob is not None:
        likelihood = math.exp(reading.logprob)
    is_answered = not is_no_answer(end.text) and end.outcome != "not in the sources"
    probabilities = [math.exp(check.logprob or 0.0) for check in checks[-2:]]
    are_yes = [check.reply.strip().casefold().startswith("yes") for check in checks[-2:]]
    checked = [p if is_yes else 1 - p for p, is_yes in zip(probabilities, are_yes, strict=True)]
    cited = {(s.source, s.sentence): s.sentence for supports in end.supports for s in supports}.values()
    gold = row.get("gold", [])
    return {
        **{key: row[key] for key in ("id", "folder", "kind", "said", "language")},
        "answer": end.text,
        "outcome": end.outcome,
        "missing": end.missing,
        "right": row["said"] and is_right(end.text, row.get("answers", [])),
        "answered": is_answered,
        "ruling": certificate_of_run(events).ruling,
        "likelihood": likelihood,
        "checks": checked,
        "certainty": support_score(likelihood, checked) if checked else likelihood or 0.5,
        "calls": len(calls),
        "tokens": sum(call.usage.prompt_tokens + call.usage.completion_tokens for call in calls),
        "seconds": sum(call.usage.seconds for call in calls),
        "cited": len(cited),
        "cited_gold": sum(any(is_same_evidence(sentence, item) for item in gold) for sentence in cited),
        "gold": len(gold),
        "gold_cited": sum(any(is_same_evidence(sentence, item) for sentence in cited) for item in gold),
    }


def is_right(answer: str, accepted: Sequence[str]) -> bool:
    """Return whether an answer is an accepted form, or holds one with at most a few words more."""
    words = name_units(answer)
    return any(
        contains_words(form, answer) and len(words) <= len(name_units(form)) + _EXTRA_WORDS
        for form in accepted
    )


def is_same_evidence(sentence: str, item: Any) -> bool:
    """Return whether a cited sentence is, holds or is most of a gold sentence, or has all cells of a row."""
    if "cells" in item:
        return all(contains_words(cell, sentence) for cell in item["cells"] if name_units(cell))
    cited, gold = name_units(sentence), name_units(item["sentence"])
    short, long = sorted((cited, gold), key=len)
    return f" {' '.join(short)} " in f" {' '.join(long)} " and len(short) >= len(long) / 2


def interval(rows: Sequence[Row], measure: Callable[[Sequence[Row]], float], draws: int = 1000) -> str:
    """Return a measure with its 95 % interval, by drawing folders and then their questions again."""
    if not rows:
        return "–"
    random = np.random.default_rng(0)
    folders = sorted({row["folder"] for row in rows})
    by_folder = {folder: [row for row in rows if row["folder"] == folder] for folder in folders}
    values = []
    for _ in range(draws):
        drawn = [by_folder[folders[i]] for i in random.integers(len(folders), size=len(folders))]
        values.append(
            measure([some[i] for some in drawn for i in random.integers(len(some), size=len(some))])
        )
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return f"{format_decimal(measure(rows))} [{format_decimal(low)}, {format_decimal(high)}]"


def support_of(row: Row) -> float:
    """Return how far a system holds its answer for supported; at most .001 for an answer that it withdraws."""
    certainty = row["certainty"]
    if not row["answered"]:
        return 1e-3 * (certainty if row["checks"] else 1 - certainty)
    return certainty if row["outcome"] in CLAIMED else certainty / 2


def separation(rows: Sequence[Row]) -> float:
    """Return the AUROC of `support_of`, questions that are answered in the sources against the others."""
    said, unsaid = ([support_of(row) for row in rows if row["said"] is value] for value in (True, False))
    return roc_area(said, unsaid) if said and unsaid else math.nan


def claimed(row: Row) -> bool:
    """Return whether an answer is given as one, and not as a guess."""
    return row["answered"] and row["outcome"] in CLAIMED


def share(rows: Sequence[Row], holds: Callable[[Row], bool]) -> float:
    """Return the share of rows for which something holds, or nan without rows."""
    return mean(holds(row) for row in rows) if rows else math.nan


def not_said_at(rows: Sequence[Row], kept: float = 0.9) -> float:
    """Return the share of not said questions still answered where this share of the right answers is kept."""
    right = sorted((support_of(row) for row in rows if row["right"]), reverse=True)
    if not right:
        return math.nan
    level = right[math.ceil(kept * len(right)) - 1]
    return share([row for row in rows if not row["said"]], lambda row: support_of(row) >= level)


def measures(rows: Sequence[Row]) -> dict[str, str]:
    """Return the measures of a system by name, each as text."""
    said, unsaid = [row for row in rows if row["said"]], [row for row in rows if not row["said"]]
    right = [row for row in rows if row["right"]]
    wrong = [row for row in rows if not row["right"] and not is_no_answer(row["answer"])]
    told = {
        "questions (said / not said)": f"{len(said)} / {len(unsaid)}",
        "right, with guesses": format_decimal(share(said, lambda row: row["right"])),
        "right and claimed": interval(
            said, lambda rows: share(rows, lambda row: row["right"] and claimed(row))
        ),
        "claimed though not said": interval(unsaid, lambda rows: share(rows, claimed)),
        "right among the claimed": format_decimal(
            share([row for row in rows if claimed(row)], lambda row: row["right"])
        ),
        "AUROC, said against not said": interval(rows, separation),
        "area under risk and coverage": format_decimal(
            risk_area([support_of(row) for row in rows], [row["right"] for row in rows])
        ),
        "not said still answered where 90 % of the right are kept": format_decimal(not_said_at(rows)),
        "certificate passes wrong": interval(
            wrong, lambda rows: share(rows, lambda row: row["ruling"] == "passes")
        ),
        "certificate withholds right": interval(
            right, lambda rows: share(rows, lambda row: row["ruling"] == "withheld")
        ),
    }
    total = {key: sum(row[key] for row in right if claimed(row)) for key in _CITATIONS}
    if total["cited"] and total["gold"]:
        told["cited sentences that are gold"] = format_decimal(total["cited_gold"] / total["cited"])
        told["gold sentences that are cited"] = format_decimal(total["gold_cited"] / total["gold"])
    told["calls, mean"] = f"{mean(row['calls'] for row in rows):.2f}"
    told["seconds, median"] = f"{median(row['seconds'] for row in rows):.1f}"
    told["tokens, mean"] = f"{mean(row['tokens'] for row in rows):,.0f}"
    for kind in sorted({row["kind"] for row in rows}):
        some = [row for row in rows if row["kind"] == kind]
        if some[0]["said"]:
            told[f"{kind}: right, right and claimed"] = (
                f"{share(some, lambda row: row['right']):.3f}, "
                f"{share(some, lambda row: row['right'] and claimed(row)):.3f} of {len(some)}"
            )
        else:
            told[f"{kind}: claimed"] = f"{share(some, claimed):.3f} of {len(some)}"
    return told


def paired(one: Sequence[Row], other: Sequence[Row]) -> dict[str, str]:
    """Return what a system keeps of the right answers of another, and how much better it separates."""
    found = {row["id"]: row for row in one}
    both = [{**row, "one": found[row["id"]]} for row in other if row["id"] in found]
    right = [row["one"] for row in both if row["right"]]
    kept = interval(right, lambda rows: share(rows, lambda row: row["right"] and claimed(row)))
    gain = interval(both, lambda rows: separation([row["one"] for row in rows]) - separation(rows))
    return {
        "right answers of it that are kept": kept,
        "difference of AUROC": gain if not all(row["said"] for row in both) else "–",
    }


def table(title: str, columns: dict[str, dict[str, str]]) -> str:
    """Return a table in Markdown with a column for each system."""
    names = list(dict.fromkeys(name for told in columns.values() for name in told))
    rows = tuple(
        tuple(map(Cell, (name, *(told.get(name, "–") for told in columns.values())))) for name in names
    )
    return Grid(title, ("", *columns), rows).markdown


def score_traces(data: str, part: str) -> list[Row]:
    """Score the finished runs of a part, of every system."""
    found = []
    for row in load_rows(data, part):
        for system in SYSTEMS:
            path = RUNS / data / part / system / f"{row['id'].replace('/', '_')}.jsonl"
            if any(isinstance(event, Answered) for event in read_events(path)):
                found.append({"system": system, **score_run(row, path)})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", choices=("own-folders", "squad2-unanswerable"))
    parser.add_argument("part", choices=("dev", "test"))
    parser.add_argument("--score", action="store_true", help="score the traces again")
    given = parser.parse_args()
    kept = RESULTS / f"{given.data}_{given.part}.jsonl"
    rows = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    if given.score:
        scored = score_traces(given.data, given.part)
        known = {(row["system"], row["id"]) for row in scored}
        rows = [row for row in rows if (row["system"], row["id"]) not in known] + scored
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_atomically(kept, "".join(lines), "the scores")
    for language in sorted({row["language"] for row in rows}, key=("en", "de", "zh").index):
        by_system: dict[str, list[Row]] = {}
        for row in rows:
            if row["language"] == language:
                by_system.setdefault(row["system"], []).append(row)
        print(
            table(
                f"{given.data}, {given.part}, {language}",
                {name: measures(some) for name, some in by_system.items()},
            )
        )
        others = {
            f"{own} beside {name}": paired(by_system[own], by_system[name])
            for own, name in product(by_system, repeat=2)
            if own.startswith("paths") and not name.startswith("paths at") and own != name
        }
        if others:
            print(table("On the questions that both were asked", others))


if __name__ == "__main__":
    main()
