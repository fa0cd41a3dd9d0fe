"""Look for leaks in a thousand worlds of characters: no character, whatever it asks, is shown what it may not
know.

    python -m benchmarks.npc.npc_visibility [--worlds 1000] [--engines sqlite postgres]

In each planted world every text is a word that stands nowhere else. Every public method of the graph, the
log, the texts, the hot context and the tool is asked as every NPC, by ids and words that it may not know too,
and each answer and error is searched for words that an oracle apart from the program does not allow. Beside
them stands what the query of the document tells of the graph. Results go to
benchmarks/results/npc_visibility.json; a leak ends the command with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results" / "npc_visibility.json"
ENGINES = ("sqlite", "postgres")
HEAD = f"{'engine':10}{'worlds':>8}{'NPCs':>8}{'questions':>11}{'hidden words':>14}{'told':>6}{'told by the document':>22}{'CPU s':>8}"


@contextmanager
def opened(engine: str) -> Iterator[Any]:
    """An empty world on an engine of its own."""
    from support.npc_places import at_postgres

    from kgot_lab.domains.npc.opening import open_world
    from kgot_lab.stores.postgres.server import Server

    if engine == "sqlite":
        with open_world() as world:
            yield world
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="kgot_npc_") as folder:
        Path(folder).chmod(0o755)  # the embedded PostgreSQL may run as a user of its own
        server = Server(Path(folder) / "data")
        server.start()
        try:
            with at_postgres(server.conninfo(), "worlds") as world:
                yield world
        finally:
            server.stop()


def looked(engine: str, worlds: int) -> dict[str, Any]:
    """What was asked and told in the first so many worlds, on one engine."""
    from support.npc_asking import questions, told_too_much
    from support.npc_oracle import may_hear, may_see
    from support.npc_places import plant_layers, planted_embedder
    from support.npc_planted import canaries, planted
    from support.npc_remembering import remembered_too_much

    from kgot_lab.domains.npc.layers.memory import WorldLayers

    counted = {
        "engine": engine,
        "worlds": worlds,
        "npcs": 0,
        "questions": 0,
        "hidden": 0,
        "told": 0,
        "by_document": 0,
    }
    began = time.process_time()
    with opened(engine) as world:
        layers = WorldLayers(world, planted_embedder())
        for seed in range(worlds):
            there = planted(seed)
            plant_layers(there, layers)
            for npc in there.npcs:
                hidden = canaries(*there.entities.values(), *there.edges) - may_see(there, npc)[2]
                unheard = canaries(*there.entries, *there.chunks).difference(
                    *may_hear(there, npc), there.entities
                )
                wrong, asked = remembered_too_much(layers, there, npc)
                wrong += told_too_much(world, there, npc)
                counted["npcs"] += 1
                counted["questions"] += asked + sum(
                    1 for _ in questions(npc, sorted(there.entities), sorted(hidden)[:3])
                )
                counted["hidden"] += len(hidden | unheard)
                counted["told"] += len(wrong)
                counted["by_document"] += len(
                    canaries(world.visible_subgraph(npc, policy="document")) & hidden
                )
                for each in wrong:
                    print(f"world {seed}, {npc}: {each}", file=sys.stderr)
    return {**counted, "cpu_seconds": round(time.process_time() - began, 1)}


def line(found: dict[str, Any]) -> str:
    return "{engine:10}{worlds:8,}{npcs:8,}{questions:11,}{hidden:14,}{told:6,}{by_document:22,}{cpu_seconds:8}".format(
        **found
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--table", action="store_true", help="print the table of the last results")
    options = parser.parse_args()
    if options.table:
        print(HEAD, *map(line, json.loads(RESULTS.read_text())), sep="\n")
        return
    sys.path.append(str(Path(__file__).parents[2] / "tests"))  # the worlds and the oracle
    print(HEAD)
    found = []
    for engine in options.engines:
        found.append(looked(engine, options.worlds))
        print(line(found[-1]), flush=True)
    known = {row["engine"]: row for row in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    known |= {each["engine"]: each for each in found}
    RESULTS.write_text(json.dumps([known[engine] for engine in ENGINES if engine in known], indent=1) + "\n")
    sys.exit(1 if any(each["told"] for each in found) else 0)


if __name__ == "__main__":
    main()
