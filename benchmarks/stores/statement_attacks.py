"""Attacks the stores by statements, in each of their languages, the way a hostile or confused model would.

Run it: python -m benchmarks.stores.statement_attacks [--stores sqlite …]. Every attack must be refused, or
have no effect: the graph is as it was, nothing of the host is in the rows, nobody connected to the host's
server, and the next statement is right. The tests run the same attacks (tests/support/attacks.py). Servers
are started on this machine; exit code 1 means that an attack got what it should not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.requirements import require_or_exit, require_sandbox

sys.path.append(str(Path(__file__).parents[2] / "tests"))  # attacks and servers stand beside the tests
from support.attacks import ATTACKS, PATIENCE, failings, host, open_to_attack, what_it_got
from support.store_homes import home, missing


def attacked(kind: str, *, show_all: bool) -> int:
    """Attack one kind of store, print what got through, or everything, and return how many attacks did."""
    bad, counts = 0, Counter[str]()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, host() as (places, connected):
        Path(name).chmod(0o755)  # the embedded PostgreSQL may run as a user of its own
        with (
            home(kind, Path(name)) as (where, _),
            open_to_attack(kind, **{key: where[key] for key in where if key != "raw"}) as store,
        ):
            for attack in ATTACKS[kind]:
                got = what_it_got(store, attack, places)
                found = failings(store, kind, got, places, connected)
                if float(got.split()[1]) > PATIENCE:
                    found.append("it was not stopped in time")
                counts[attack.kind] += 1
                bad += bool(found)
                if found or show_all:
                    print(f"  {kind} | {attack.kind} | {attack.name}: {got[:160]} {'; '.join(found)}")
                connected.clear()
    print(
        f"{kind}: {counts.total()} attacks: "
        + ", ".join(f"{name} {count}" for name, count in counts.items()),
        flush=True,
    )
    return bad


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stores", nargs="*", default=list(ATTACKS), choices=list(ATTACKS))
    parser.add_argument("--all", action="store_true", help="print what every attack got")
    options = parser.parse_args()
    for kind in options.stores:
        require_or_exit(not missing(kind), missing(kind))
        if kind.endswith("embedded"):
            require_sandbox(kind.split("_")[0])
    bad = sum(attacked(kind, show_all=options.all) for kind in options.stores)
    told = f"{bad} attacks got what they should not"
    print(told if bad else "every attack was refused or without effect, and the next statement was right")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
