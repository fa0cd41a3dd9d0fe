"""Attacks the sandbox the way a hostile statement would, and says what each attack got.

Run it: python -m benchmarks.stores.sandbox_attacks. The tests run the same attacks
(tests/support/hostile_code.py) and check each outcome.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from benchmarks.requirements import require_sandbox
from kgot_lab.sandbox import open_sandbox
from kgot_lab.stores import InMemory

sys.path.append(str(Path(__file__).parents[2] / "tests"))  # attacks and servers stand beside the tests
from support.hostile_code import CODE_ATTACKS
from support.sandbox_attacks import ATTACKED_BY_CODE, host_of_code, what_code_got


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    require_sandbox()
    sandbox = open_sandbox(memory_mb=256)
    with (
        host_of_code(Path(__file__).parents[2]) as (places, connected),
        InMemory(open=lambda: sandbox) as store,
    ):
        store.write(ATTACKED_BY_CODE)
        print(
            f"{len(CODE_ATTACKS)} attacks on {sandbox!r}\n\n| class | tried | got | as expected | next statement |\n|---|---|---|---|---|"
        )
        for attack in CODE_ATTACKS:
            got = what_code_got(store, sandbox, attack, places)
            well = store.read("result = sorted(G.nodes)") == ("Ada", "England", "London")
            expected = bool(re.search(attack.gets, got, re.S))
            short = " ".join(got[:90].replace("|", "/").split())
            print(
                f"| {attack.kind} | {attack.name} | {short} | {'yes' if expected else 'NO'} | {'right' if well else 'WRONG'} |"
            )
        print(f"\nConnections the host's server saw: {len(connected)}")


if __name__ == "__main__":
    main()
