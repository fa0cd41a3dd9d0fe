"""What a run of questions took: calls, tokens, seconds and dollars by role and by model, and the calls of
each tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from kgot_lab.benchmark.questions.batch import LEDGER, RECEIPTS, TOOL_TIMES, TOTALS, traces_of
from kgot_lab.benchmark.questions.question_result import read_receipts
from kgot_lab.io.files import write_whole
from kgot_lab.loop.events import Event
from kgot_lab.loop.ledger import Entry, Ledger, ledger
from kgot_lab.types import Json


def write_totals(folder: Path) -> dict[str, Json]:
    """Write the ledger and the totals of all sittings, derived from what is on file, and give the totals."""
    entries = ledger_of(traces_of(folder))
    entries.save(folder / LEDGER)
    receipts = read_receipts(folder / RECEIPTS).values()
    totals: dict[str, Json] = {
        "questions": len(receipts),
        "errors": sum(bool(receipt.error) for receipt in receipts),
        "all": _sum(entries.entries),
        "by role": {
            role: _sum(entry for entry in entries.entries if entry.role == role) for role in entries.by_role()
        },
        "by model": {
            model: _sum(entry for entry in entries.entries if entry.model == model)
            for model in _models(entries)
        },
        "tools": tool_totals(folder / TOOL_TIMES),
        "seconds of all questions": round(sum(receipt.seconds or 0.0 for receipt in receipts), 3),
        "questions of unknown seconds": sum(receipt.seconds is None for receipt in receipts),
    }
    write_whole(folder / TOTALS, json.dumps(totals, indent=1) + "\n", "the totals")
    return totals


def ledger_of(traces: Mapping[str, Iterable[Event]]) -> Ledger:
    """Every question that was asked of a model in some runs, under the name of the run."""
    return Ledger(tuple(entry for name, events in traces.items() for entry in ledger(events, name).entries))


def tool_totals(path: Path) -> dict[str, Json]:
    """How often each tool was called and failed, and the seconds of wall time it took; a line that a kill cut
    short is passed over.
    """
    found: dict[str, Json] = {}
    for line in path.read_text(encoding="utf-8").split("\n") if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        each = found.setdefault(row["tool"], {"calls": 0, "failed": 0, "seconds": 0.0})
        each["calls"], each["failed"] = each["calls"] + 1, each["failed"] + row["failed"]
        each["seconds"] = round(each["seconds"] + row["seconds"], 4)
    return dict(sorted(found.items()))


def _models(entries: Ledger) -> list[str]:
    return list(dict.fromkeys(entry.model for entry in entries.entries))


def _sum(entries: Iterable[Entry]) -> dict[str, Json]:
    some = list(entries)
    read, written = sum(entry.prompt_tokens for entry in some), sum(entry.completion_tokens for entry in some)
    seconds, dollars = sum(entry.seconds for entry in some), sum(entry.cost for entry in some)
    return {
        "calls": len(some),
        "prompt tokens": read,
        "completion tokens": written,
        "seconds": round(seconds, 3),
        "dollars": dollars,
    }
