"""Learn the scorer of a trail again, on dev questions alone, and write it into the package.

python -m benchmarks.standard_sets.fit_trail            about ten minutes, and the sentences of 15,000
passages are embedded before, if they never were python -m benchmarks.standard_sets.fit_trail --check    the
same in two halves crossed: learn on one, measure on the other; writes no weights, but
                                          results/standard_sets/crossed.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean

from benchmarks.standard_sets.learning import crossed, learnt_scorers
from kgot_lab.cli.terminal import progress_bar
from kgot_lab.embedding.vectors import minilm

CROSSED = Path(__file__).parents[1] / "results" / "standard_sets" / "crossed.json"
ROOM = Path(__file__).parents[2] / "kgot_lab" / "retrieval" / "multihop"


def main() -> None:
    """Learn, or check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="measure what is learnt on one half on the other"
    )
    wanted = parser.parse_args()
    with progress_bar("learning") as progress:
        if wanted.check:
            found = crossed(minilm(), progress)
            CROSSED.write_text(json.dumps(found) + "\n", encoding="utf-8")
            for name, reached in found.items():
                print(f"{name:28} {len(reached):4} questions  recall@5 {mean(reached.values()):.3f}")
        else:
            for name, scorer in learnt_scorers(minilm(), progress).items():
                (ROOM / name).write_text(json.dumps(scorer.as_json()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
