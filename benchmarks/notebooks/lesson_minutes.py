"""How long each notebook takes: words, code cells, exercises, and the minutes that a reader should set aside.

minutes = words of prose / 200 + code cells * 15 s + exercises * 90 s, rounded up to the next 5. It is an
estimate by that formula and no measurement of readers. What a notebook says itself stands beside it. With
--run each is run from a clean kernel as well, and the seconds that this took are shown; nothing is written.

python -m benchmarks.notebooks.lesson_minutes                      all notebooks
python -m benchmarks.notebooks.lesson_minutes --run                and the seconds of Run All, here and now
python -m benchmarks.notebooks.lesson_minutes --set                write the minutes into the notebooks
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from dataclasses import dataclass
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
WORDS_A_MINUTE, MINUTES_A_CELL, MINUTES_AN_EXERCISE, STEP = 200, 0.25, 1.5, 5
STATED = re.compile(r"(\*\*Time:\*\* )(\d+)( minutes)")


@dataclass(frozen=True)
class Lesson:
    """What a notebook holds, counted, and the minutes that it states."""

    name: str
    words: int
    cells: int
    exercises: int
    stated: int

    @property
    def reading(self) -> float:
        """The estimate in minutes, not rounded."""
        return (
            self.words / WORDS_A_MINUTE + self.cells * MINUTES_A_CELL + self.exercises * MINUTES_AN_EXERCISE
        )

    @property
    def minutes(self) -> int:
        """The estimate, rounded up to a multiple of five."""
        return STEP * math.ceil(self.reading / STEP)


def lesson(path: Path) -> Lesson:
    """What a notebook on file holds; raises ValueError where it does not say how long it takes."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose, code = (
        ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]
        for kind in ("markdown", "code")
    )
    if not (stated := STATED.search("\n".join(prose))):
        raise ValueError(f"{path.name} does not say **Time:** N minutes")
    words = sum(len(text.split()) for text in prose)
    return Lesson(path.stem, words, len(code), sum("lab.exercise(" in text for text in code), int(stated[2]))


def run_all(path: Path) -> float:
    """The seconds that all cells of a notebook took from a clean kernel, its start included; nothing is
    written.
    """
    import nbformat
    from nbconvert.preprocessors import ExecutePreprocessor

    notebook, began = nbformat.read(path, as_version=4), time.monotonic()
    ExecutePreprocessor(timeout=300, kernel_name="python3").preprocess(
        notebook, {"metadata": {"path": str(path.parent)}}
    )
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="*", type=Path, help="notebooks, all unless named")
    parser.add_argument("--run", action="store_true", help="run each and say how many seconds it took")
    parser.add_argument("--set", action="store_true", help="write the minutes into the notebooks")
    given = parser.parse_args()
    print(f"{'notebook':32} words cells exercises estimate minutes stated" + "  Run All" * given.run)
    for path in given.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        told = lesson(path)
        line = f"{told.name:32} {told.words:5,} {told.cells:5} {told.exercises:9} {told.reading:8.1f} {told.minutes:7} {told.stated:6}"
        print(line + (f" {run_all(path):6.1f} s" if given.run else ""), flush=True)
        if given.set:
            path.write_text(
                STATED.sub(rf"\g<1>{told.minutes}\g<3>", path.read_text(encoding="utf-8")), encoding="utf-8"
            )


if __name__ == "__main__":
    main()
