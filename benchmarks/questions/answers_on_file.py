"""What was answered, as it is on file: a file for each system and part of the split, a table of all, and the
loop's gain over RAG.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

_FILES = {"dev": "develop"}  # what the files call that split


def answers_file(folder: Path, part: str, system: str) -> Path:
    """The file with the results of a system."""
    return folder / f"hotpotqa_{_FILES.get(part, part)}_{system}.jsonl"


def rows_on_file(path: Path) -> list[dict[str, Any]]:
    """The results on file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")[1:]]


def _interval(values: Sequence[float], rounds: int = 10_000, seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of a mean."""
    draws = np.random.default_rng(seed).choice(values, (rounds, len(values))).mean(axis=1)
    return float(np.quantile(draws, 0.025)), float(np.quantile(draws, 0.975))


def answers_table(folder: Path, part: str) -> str:
    """The results as Markdown, derived from the per-question results alone."""
    columns = "| system | n | EM | F1 [95 % interval] | median s | calls | answers resting on rows | steps used up | rows hold the answer |"
    lines = [columns, "|" + "---|" * 9]
    for path in sorted(folder.glob(f"hotpotqa_{_FILES.get(part, part)}_*.jsonl")):
        data = rows_on_file(path)
        if not data:
            continue
        scores = [float(row["f1"]) for row in data]
        low, high = _interval(scores)
        cells = [
            path.stem.removeprefix(f"hotpotqa_{_FILES.get(part, part)}_"),
            len(data),
            f"{np.mean([row['em'] for row in data]):.3f}",
        ]
        cells += [
            f"{np.mean(scores):.3f} [{low:.2f}, {high:.2f}]",
            f"{np.median([row['seconds'] for row in data]):.0f}",
        ]
        cells += [f"{np.mean([row['calls'] for row in data]):.1f}"]
        if data[0]["forced"] is not None:
            cells += [
                f"{1 - np.mean([row['forced'] for row in data]):.2f}",
                f"{np.mean([row['out_of_steps'] for row in data]):.2f}",
            ]
            cells += [f"{np.mean([row['rows_hold_answer'] for row in data]):.2f}"]
        lines.append("| " + " | ".join(map(str, cells + [""] * (9 - len(cells)))) + " |")
    return "\n".join([*lines, *_paired(folder, part)])


def _paired(folder: Path, part: str) -> list[str]:
    """The loop's gain over RAG, question by question, with its bootstrap interval."""
    ours, theirs = answers_file(folder, part, "kgot_local"), answers_file(folder, part, "rag")
    if not (ours.exists() and theirs.exists()):
        return []
    base = {row["id"]: float(row["f1"]) for row in rows_on_file(theirs)}
    gains = [float(row["f1"]) - base[row["id"]] for row in rows_on_file(ours) if row["id"] in base]
    if not gains:
        return []
    low, high = _interval(gains)
    wins, losses = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    counts = f"{wins} wins, {losses} losses, {len(gains)} questions"
    return [
        "",
        f"kgot_local minus rag, F1, paired: {np.mean(gains):+.3f} [{low:+.2f}, {high:+.2f}]; {counts}",
    ]
