"""The trial that chose the embedded Cypher engine: what each gets right of the statements models write, how
fast it is, and how safe.

Run it: python benchmarks/cypher_engines.py [--quick]. Every part of an engine runs in a process of its own,
since some can crash. Writes benchmarks/results/cypher_engines.json. A value counts as right only if its kind
is right too: 1 is neither 1.0 nor "1" nor true.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

from kgot_lab.cli.requirements import need_packages, need_sandbox
from kgot_lab.experiments.stores.cypher_candidates import CANDIDATES
from kgot_lab.experiments.stores.cypher_shapes import CYPHER_SHAPES
from kgot_lab.experiments.stores.cypher_trial import cypher_trial, trial_table

RESULTS = Path(__file__).parent / "results" / "cypher_engines.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer kills and repetitions, nothing written")
    parser.add_argument("--engine", choices=list(CANDIDATES), help="only this one, nothing written")
    given = parser.parse_args()
    engines = [given.engine] if given.engine else list(CANDIDATES)
    for engine in engines:
        extra = "cypher" if CANDIDATES[engine].package == "arcadedb-embedded" else "engines"
        need_packages(extra, CANDIDATES[engine].folders[0])
    if "ArcadeDB, as we run it" in engines:
        need_sandbox("cypher")
    trials = []
    for engine in engines:
        began = time.perf_counter()
        trials.append(cypher_trial(engine, rounds=20 if given.quick else 100, times=3 if given.quick else 20))
        print(
            f"{engine}: {trials[-1]['right']} of {len(CYPHER_SHAPES)} shapes, {time.perf_counter() - began:.0f} s",
            file=sys.stderr,
        )
        for name, why in trials[-1]["wrong"].items():
            print(f"  {name}: {why}", file=sys.stderr)
    print(trial_table(trials))
    if not given.quick and not given.engine:
        machine = {
            "machine": platform.platform(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        about = {**machine, "date": time.strftime("%Y-%m-%d")}
        RESULTS.write_text(json.dumps({**about, "trials": trials}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
