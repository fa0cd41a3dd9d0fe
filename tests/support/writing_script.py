"""A program that writes to one graph beside others like it, and says in JSON what was acknowledged and what
it read of its own meanwhile.

Run as: python writing_script.py KIND OPTIONS NAME WRITES, options in JSON. It begins when a line comes in,
and opens its store before that.
"""

from __future__ import annotations

import json
import sys

from kgot_lab.errors import QueryFailed, StoreUnavailable
from kgot_lab.stores import open_store
from kgot_lab.types import Diff, Edge, Node, Triple

HUB = "everybody"


def main() -> None:
    kind, options, name, writes = sys.argv[1:]
    store = open_store(kind, **json.loads(options))
    kept, missed, refused = list[str](), list[str](), list[str]()
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(writes)):
        own = f"{name} {number}"
        try:
            if number % 2 and kind != "postgres":  # which is changed by diffs alone
                store.write(store.dialect.add([(Triple(own, "knows", HUB), {"by": name})]))
            else:
                store.apply(Diff(added_nodes=(Node(own, ("Own",), {"by": name}),)))
                store.apply(Diff(added_edges=(Edge(own, "knows", HUB, {"by": name}),)))
        except (StoreUnavailable, QueryFailed) as error:
            refused.append(f"{own}: {error}")
            continue
        kept.append(own)
        if [edge.target for edge in store.neighbours(own)] != [HUB]:
            missed.append(own)
        if number % 5 == 0:
            there = store.graph()
            missed += [each for each in kept if each not in there.ids]
    store.close()
    print(json.dumps({"kept": kept, "missed": missed, "refused": refused}))


if __name__ == "__main__":
    main()
