"""Score the runs of `benchmarks.own_folders.run`: answers kept, answers not said, citations, certificates, calls.

python -m benchmarks.own_folders.score own-folders dev
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.own_folders.run import RUNS, SYSTEMS, Row, load_rows
from kgot_lab.benchmark.questions.attempt import read_events
from kgot_lab.evaluation.significance import roc_area
from kgot_lab.loop.answer_check import support_score
from kgot_lab.loop.certificate import certificate_of_run
from kgot_lab.loop.events import Answered, Asked
from kgot_lab.loop.modes.paths.values import is_no_answer
from kgot_lab.text.words import contains_words, name_units

_CITATIONS = ("cited", "cited_gold", "gold", "gold_cited")
CLAIMED = ("supported", "not checked")  # outcomes of an answer that is not told as a guess
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
    check = None
    if checks:
        certainty = math.exp(checks[-1].logprob or 0.0)
        check = certainty if checks[-1].reply.strip().casefold().startswith("yes") else 1 - certainty
    cited = {(s.source, s.sentence): s.sentence for supports in end.supports for s in supports}.values()
    gold = row.get("gold", [])
    return {
        **{key: row[key] for key in ("id", "folder", "kind", "said")},
        "answer": end.text,
        "outcome": end.outcome,
        "missing": end.missing,
        "right": row["said"] and is_right(end.text, row.get("answers", [])),
        "answered": is_answered,
        "ruling": certificate_of_run(events).ruling,
        "likelihood": likelihood,
        "check": check,
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


def interval(rows: Sequence[Row], measure: Any, draws: int = 1000) -> str:
    """Return a measure with its 95 % interval, by drawing folders and then their questions again."""
    random = np.random.default_rng(0)
    folders = sorted({row["folder"] for row in rows})
    by_folder = {folder: [row for row in rows if row["folder"] == folder] for folder in folders}
    values = []
    for _ in range(draws):
        drawn = [by_folder[folders[i]] for i in random.integers(len(folders), size=len(folders))]
        sample = [some[i] for some in drawn for i in random.integers(len(some), size=len(some))]
        values.append(measure(sample))
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return f"{measure(rows):.3f} [{low:.3f}, {high:.3f}]"


def support_of(row: Row) -> float:
    """Return how far a system holds its answer for supported; at most .001 for an answer that it withdraws."""
    likelihood, check = row["likelihood"], row["check"]
    certainty = likelihood or 0.5 if check is None else support_score(likelihood, check)
    if not row["answered"]:
        return 1e-3 * (1 - certainty if check is None else certainty)
    return certainty if row["outcome"] in CLAIMED else certainty / 2


def separation(rows: Sequence[Row]) -> float:
    """Return the AUROC of `support_of`, questions that are answered in the sources against the others."""
    said, unsaid = ([support_of(row) for row in rows if row["said"] is value] for value in (True, False))
    return roc_area(said, unsaid) if said and unsaid else math.nan


def share(rows: Sequence[Row], key: str) -> float:
    """Return the share of rows for which a field is true."""
    return mean(bool(row[key]) for row in rows) if rows else math.nan


def report(rows: Sequence[Row]) -> None:
    """Print the measures of a system."""
    for row in rows:
        row["claims"] = row["answered"] and row["outcome"] in CLAIMED
        row["right_claim"] = row["right"] and row["claims"]
    said, unsaid = [row for row in rows if row["said"]], [row for row in rows if not row["said"]]
    print(f"  {len(said)} said, {len(unsaid)} not")
    print(f"  right {share(said, 'right'):.3f}, right and supported {share(said, 'right_claim'):.3f}")
    print("  answered though not said:", interval(unsaid, lambda rows: share(rows, "claims")))
    for kind in sorted({row["kind"] for row in rows}):
        some = [row for row in rows if row["kind"] == kind]
        shares = f"right {share(some, 'right'):.3f}, supported {share(some, 'claims'):.3f}"
        print(f"    {kind} ({len(some)}): {shares}, calls {mean(row['calls'] for row in some):.1f}")
    print("  AUROC, said against not:", interval(rows, separation))
    claims = [row for row in rows if row["claims"]]
    print(f"  right among the supported: {share(claims, 'right'):.3f}")
    total = {key: sum(row[key] for row in claims if row["right"]) for key in _CITATIONS}
    if total["cited"] and total["gold"]:
        precision, recall = total["cited_gold"] / total["cited"], total["gold_cited"] / total["gold"]
        print(f"  cited sentences among the gold {precision:.3f}, gold cited {recall:.3f}")
    right = [row for row in rows if row["right"]]
    wrong = [row for row in rows if not row["right"] and not is_no_answer(row["answer"])]
    passed = (
        interval(wrong, lambda rows: mean(row["ruling"] == "passes" for row in rows)) if wrong else "none"
    )
    withheld = (
        interval(right, lambda rows: mean(row["ruling"] == "withheld" for row in rows)) if right else "none"
    )
    print(f"  certificate: passes {passed} of {len(wrong)} wrong, withholds {withheld} of {len(right)} right")
    calls, seconds = [row["calls"] for row in rows], median(row["seconds"] for row in rows)
    print(f"  calls: mean {mean(calls):.2f}, median {median(calls)}; seconds: median {seconds:.1f}")
    print(f"  tokens: mean {mean(row['tokens'] for row in rows):.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", choices=("own-folders", "squad2-unanswerable"))
    parser.add_argument("part", choices=("dev", "test"))
    parser.add_argument("--list", action="store_true", help="list each question")
    given = parser.parse_args()
    rows = {row["id"]: row for row in load_rows(given.data, given.part)}
    for system in SYSTEMS:
        folder = RUNS / given.data / given.part / system
        results = []
        for id, row in rows.items():
            path = folder / f"{id.replace('/', '_')}.jsonl"
            if any(isinstance(event, Answered) for event in read_events(path)):
                results.append(score_run(row, path))
        if results:
            print(f"{system}:")
            report(results)
        if given.list:
            for result in results:
                print("   ", result)


if __name__ == "__main__":
    main()
