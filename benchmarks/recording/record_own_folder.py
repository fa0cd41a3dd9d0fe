"""Record the questions of the lesson on one's own folder, as the live local model answers them over the
invented texts beside them.

python -m benchmarks.recording.record_own_folder                  all of them, about four minutes on two cores
python -m benchmarks.recording.record_own_folder treasurer        one
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from kgot_lab.api.ask import ask
from kgot_lab.loop.limits import preset
from kgot_lab.loop.trace import Trace, record

FOLDER = Path(__file__).parents[2] / "data" / "own-folder"
KEYS = "Who keeps the key of the shed in which the new water pump stands?"


@dataclass(frozen=True)
class FolderQuestion:
    """A question over the folder, and the preset that it is asked with."""

    text: str
    preset: str


QUESTIONS = {
    "keys_along_paths": FolderQuestion(KEYS, "paths"),
    "keys_by_writing": FolderQuestion(KEYS, "local"),
    "treasurer": FolderQuestion("Who is the treasurer of the society?", "paths"),
}


def keep(run: Trace, name: str) -> None:
    """Write a run with a head that says which model it was."""
    about = {"model": "Qwen2.5-Coder-1.5B-Instruct Q4_K_M", **run.about, "recorded": str(date.today())}
    about["licence"] = "Apache-2.0 (model); the texts are invented, MIT"
    path = FOLDER / f"{name}.jsonl"
    path.unlink(missing_ok=True)
    for _ in record(iter(run.events), path, run=name, metadata=about):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="which to record, all unless named")
    names = parser.parse_args().names or list(QUESTIONS)
    if unknown := set(names) - set(QUESTIONS):
        parser.error(f"there is no question {', '.join(sorted(unknown))}; there are {', '.join(QUESTIONS)}")
    for name in names:
        # facts too, which a run with a memory asks for
        limits = preset(QUESTIONS[name].preset).learning()
        run = ask(QUESTIONS[name].text, FOLDER / "allotment", "local", preset=limits)
        keep(run, name)
        print(f"{name}: {run.answer}", flush=True)


if __name__ == "__main__":
    main()
