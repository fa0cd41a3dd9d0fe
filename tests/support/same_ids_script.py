"""A program that adds the same nodes to a namespace of a Bolt server as others like it, in the same order,
and one of its own after each.

Run as: python same_ids_script.py HOW OPTIONS NAME WRITES, options in JSON; it begins when a line comes in.
Says in JSON what was acknowledged, which of it as new, and what was refused. HOW is apply, merge or create;
or count, in one node, or delete, all there is.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable
from kgot_lab.stores.cypher.server import CypherServer
from kgot_lab.types import Diff, Node

STATEMENTS = {
    "merge": "MERGE (n:Own {{id: '{id}'}}) SET n.by = '{name}'",
    "create": "CREATE (:Own {{id: '{id}'}})",
    "count": "MATCH (n {{id: 'same'}}) SET n.count = coalesce(n.count, 0) + 1",
}


def main() -> None:
    how, options, name, writes = sys.argv[1:]
    where: dict[str, Any] = json.loads(options)
    store = CypherServer(**where)
    kept, made, refused = list[str](), list[str](), list[str]()
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(writes)):
        for id in (
            (f"same {number}", f"{name} {number}") if how in ("apply", "merge", "create") else (str(number),)
        ):
            diff = Diff(added_nodes=(Node(id, ("Own",), {"by": name}),))
            try:
                if how == "delete":
                    CypherServer.delete_namespace(**where)
                elif how == "apply":
                    store.apply(diff)
                else:
                    diff = store.write(STATEMENTS[how].format(id=id, name=name))
            except (BadInput, StoreUnavailable, QueryFailed) as error:
                refused.append(f"{id}: {error}")
                continue
            kept.append(id)
            made += [node.id for node in diff.added_nodes]
    store.close()
    print(json.dumps({"kept": kept, "made": made, "refused": refused}))


if __name__ == "__main__":
    main()
