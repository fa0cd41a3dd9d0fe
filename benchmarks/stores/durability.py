"""Kill a process with SIGKILL while it writes, many times, and look at what its store holds afterwards.

    python -m benchmarks.stores.durability [--kills 50] [--stores sqlite …] [--table]

A child writes one fact after the other and says "begin n" before and "done n" after each; the parent kills it
at a random moment of a random write. Then the store must open, hold every fact that was done and at most the
one that was begun, whole or not at all. Results go to benchmarks/results/durability.json; a store that loses
or invents anything ends the command with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.requirements import require_or_exit, require_sandbox
from benchmarks.stores.killed_writers import SPREAD_OF_KILLS, SURVIVAL_HEAD, Survival, survival

RESULTS = Path(__file__).parents[1] / "results" / "durability.json"


def killed(kind: str, kills: int) -> Survival:
    """Kill writers of one store, in a folder or server of its own."""
    from support.store_homes import home

    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)  # the embedded PostgreSQL may run as a user of its own
        with home(kind, Path(name)) as (where, _):
            return survival(kind, where, kills)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--stores", nargs="*", default=list(SPREAD_OF_KILLS), choices=list(SPREAD_OF_KILLS))
    parser.add_argument("--table", action="store_true", help="print the table of the last results")
    options = parser.parse_args()
    if options.table:
        print(SURVIVAL_HEAD, *(Survival(**line) for line in json.loads(RESULTS.read_text())), sep="\n")
        return
    require_or_exit(
        sys.platform != "win32", "this needs SIGKILL, which Windows does not have: run it on Linux or macOS"
    )
    sys.path.append(str(Path(__file__).parents[2] / "tests"))  # the servers that tests start
    from support.store_homes import missing

    for kind in options.stores:
        require_or_exit(not missing(kind), missing(kind))
    if set(options.stores) - {"sqlite", "postgres"}:
        require_sandbox()
    print(SURVIVAL_HEAD)
    outcomes = []
    for kind in options.stores:
        outcomes.append(killed(kind, options.kills))
        print(outcomes[-1], flush=True)
    known = {line["store"]: line for line in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    known |= {outcome.store: asdict(outcome) for outcome in outcomes}
    RESULTS.write_text(
        json.dumps([known[kind] for kind in SPREAD_OF_KILLS if kind in known], indent=1) + "\n"
    )
    sys.exit(0 if all(outcome.sound for outcome in outcomes) else 1)


if __name__ == "__main__":
    main()
