"""How long a character's hot context and each of its parts take, beside the bare SQL and the targets, by the
size of the world.

    python -m benchmarks.npc.npc_latency             # 1,000 entities, 5,000 relationships, 10,000 chunks on
    SQLite and PostgreSQL: 2 minutes python -m benchmarks.npc.npc_latency --entities 1000 10000 100000
    --engines postgres --times 30    # the curve, to 1M chunks: hours python -m benchmarks.npc.npc_latency
    --table     # what was measured, against the targets of the document

The world is made by a seed: half of the entities are NPCs, each relationship leads from one of them to
anything, each location lies in another. The vectors of the chunks are directions of no words, which vary in
32 of their dimensions; real ones may be easier or harder to index. Each question is asked as an NPC drawn by
the seed; how many entities such a one sees is told. "Bare" is SQL with no policy, no support and no merging,
whose rows are fetched and made into nothing: for GraphRAG on PostgreSQL the query of the document, on SQLite,
which has no vectors, the texts of the neighbours alone. Times are by the clock of this computer, in
milliseconds. No model is asked: what the embedding of a question takes comes on top. Changes are on the disk
when they return; relationships that are put in one change are timed once. On PostgreSQL the texts are indexed
too (HNSW), and what a search of all texts finds by the index is compared with the ten that are nearest.
Relationships and chunks grow with the entities. Results go to benchmarks/results/npc_latency.json, where
those of other sizes stay.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.requirements import require_files

RESULTS = Path(__file__).parents[1] / "results" / "npc_latency.json"
ENGINES = ("sqlite", "postgres")
BULK = 5_000  # relationships that are put in one change
EFFORTS = (40, 100, 400)  # with which the index is searched
INNER = 32  # dimensions in which the vectors vary
SCALE = 1_000  # entities, at the most, of a world that the targets are for
TARGETS = {  # milliseconds, of the document
    "identity": 5.0,
    "neighbours, 1 step": 2.0,
    "neighbours, 3 steps": 10.0,
    "GraphRAG": 20.0,
    "upsert an entity": 2.0,
    "upsert a relationship": 2.0,
    "hot context": 50.0,
}

BARE_IDENTITY = """SELECT e.name, e.attributes, r.rel_type, t.name, t.type, r.attributes FROM entities e
  LEFT JOIN relationships r ON r.source_id = e.id LEFT JOIN entities t ON t.id = r.target_id WHERE e.id = :npc"""
BARE_HOPS = """WITH RECURSIVE reachable (id, depth) AS (
  SELECT e.id, 0 FROM entities e WHERE e.id = :npc
  UNION ALL SELECT r.target_id, w.depth + 1 FROM reachable w JOIN relationships r ON r.source_id = w.id WHERE w.depth < :depth)
SELECT DISTINCT e.id, e.name, e.type, w.depth FROM reachable w JOIN entities e ON e.id = w.id"""  # as the document has it
_SCOPE = "SELECT r.target_id FROM relationships r WHERE r.source_id = :npc UNION SELECT :npc"
BARE_RAG = {
    "postgres": f"""WITH semantic_matches AS (
  SELECT c.entity_id, c.content, c.embedding OPERATOR(pgvector.<=>) CAST(:vector AS pgvector.vector) AS distance
  FROM chunks c WHERE c.entity_id IN ({_SCOPE}) ORDER BY distance LIMIT 10)
SELECT e.name, e.type, e.attributes, m.content, m.distance
FROM semantic_matches m JOIN entities e ON e.id = m.entity_id ORDER BY m.distance""",
    "sqlite": f"SELECT c.content, c.embedding FROM chunks c WHERE c.entity_id IN ({_SCOPE}) AND :vector IS NOT NULL",
}
Timed = dict[str, Callable[[], object]]


@contextmanager
def opened(engine: str, folder: Path) -> Iterator[tuple[Any, Callable[[], object]]]:
    """An empty world on an engine of its own, and what has the engine count its rows, by which it plans."""
    from kgot_lab.domains.npc.opening import open_world
    from kgot_lab.stores.postgres.server import Server

    if engine == "sqlite":
        with open_world(folder / "world.db") as world:
            yield world, lambda: world.storage.rows("ANALYZE")
        return
    import psycopg

    folder.chmod(0o755)  # the embedded PostgreSQL may run as a user of its own
    server = Server(folder / "data")
    server.start()
    try:
        with (
            open_world(server.url(), namespace="latency") as world,
            psycopg.connect(server.conninfo(), autocommit=True) as owner,
        ):
            # else an index of a million vectors takes hours
            owner.execute("ALTER SYSTEM SET maintenance_work_mem = '3GB'")
            owner.execute("SELECT pg_reload_conf()")
            yield world, lambda: owner.execute("ANALYZE")
    finally:
        server.stop()


def questions(layers: Any, engine: str, npc: str) -> Timed:
    """What is timed, asked as one NPC."""
    from kgot_lab.domains.npc.layers.memory import hot_context
    from kgot_lab.domains.npc.statements import uuids

    memory, chunks = layers.memory(npc), layers.chunks
    id, rows = uuids(npc)[0], layers.world.storage.rows
    asked = {"npc": id, "vector": chunks.storage.vector(chunks.embed_query(npc))}
    return {
        "identity, bare": lambda: rows(BARE_IDENTITY, {"npc": id}),
        "identity": memory.sight.identity_snapshot,
        "neighbours, 1 step, bare": lambda: rows(BARE_HOPS, {"npc": id, "depth": 1}),
        "neighbours, 1 step": lambda: layers.world.neighbours(npc),
        "neighbours, 3 steps, bare": lambda: rows(BARE_HOPS, {"npc": id, "depth": 3}),
        "neighbours, 3 steps": lambda: layers.world.neighbours(npc, 3),
        "what it sees": memory.sight.visible_subgraph,
        "log": lambda: memory.log.search("gold"),
        "GraphRAG, bare": lambda: chunks.storage.rows(BARE_RAG[engine], asked),
        "GraphRAG": lambda: memory.query_with_context(npc),
        "hot context": lambda: hot_context(memory, npc, limit=600),
    }


def changes(world: Any, npc: str, number: int) -> Timed:
    """What is timed of changes: each is on the disk when it returns."""
    from kgot_lab.domains.npc import statements
    from kgot_lab.domains.npc.models import Entity, Relationship
    from kgot_lab.domains.npc.statements import attributes_text, uuids

    one, id = Entity("npc", f"name {number}", {"mood": f"grey {number}"}, npc), uuids(npc)[0]
    entity = {
        "id": id,
        "type": one.type,
        "name": one.name,
        "attributes": attributes_text(one.attributes),
        "at": world.now(),
    }
    told = {"attributes": "{}", "provenance": "{}", "standing": "accepted", "at": world.now()}
    tie = {"source": id, "target": id, "type": "BARE", **told}

    def bare(statement: str, row: dict[str, Any]) -> None:
        with world.storage.changing():
            world.storage.rows(statement, row)

    return {
        "upsert an entity, bare": lambda: bare(statements.PUT_ENTITY, entity),
        "upsert an entity": lambda: world.add_entity(one),
        "upsert a relationship, bare": lambda: bare(statements.PUT_RELATIONSHIP, tie),
        "upsert a relationship": lambda: world.add_relationship(Relationship(npc, npc, f"TYPE_{number % 7}")),
    }


def bulk(world: Any, npcs: Sequence[str]) -> dict[str, float]:
    """The milliseconds that BULK relationships of a new type take, put in one change."""
    from benchmarks.npc.made import WORLD_SEED
    from kgot_lab.domains.npc.models import Relationship

    chance = random.Random(WORLD_SEED + 1)
    new = [
        Relationship(one, other, "OWES") for one, other in (chance.sample(list(npcs), 2) for _ in range(BULK))
    ]
    return summary([milliseconds(lambda: world.add([], new))])


def indexed(chunks: Any, times: int) -> dict[str, Any]:
    """The milliseconds of a search of all texts, each looked at and by the index, and which part of the ten
    nearest that finds.
    """
    from benchmarks.npc.vector_index import create_index

    build = milliseconds(lambda: create_index(chunks))
    asked = [f"of what is said {number}" for number in range(times)]
    exact, took = searched(chunks, asked, None)
    told: dict[str, Any] = {"build_seconds": round(build / 1000, 1), "exact": summary(took), "efforts": {}}
    for effort in EFFORTS:
        found, took = searched(chunks, asked, effort)
        recall = sum(len(one & other) for one, other in zip(found, exact, strict=True)) / sum(map(len, exact))
        told["efforts"][str(effort)] = {**summary(took), "recall": round(recall, 4)}
    return told


def searched(chunks: Any, asked: Sequence[str], effort: int | None) -> tuple[list[set[str]], list[float]]:
    """The ids of what is found for each question, and the milliseconds that took."""
    from benchmarks.npc.vector_index import search_by_index

    def search(words: str) -> None:
        hits = chunks.search(words) if effort is None else search_by_index(chunks, words, effort)
        found.append({hit.chunk.id for hit in hits})

    found: list[set[str]] = []
    return found, [milliseconds(lambda each=each: search(each)) for each in asked]


def measured(engine: str, size: dict[str, int], times: int) -> dict[str, Any]:
    """The median and the 95th percentile of each question, in a world of some size on an engine."""
    from benchmarks.npc.made import WORLD_SEED, Directions, made_world
    from kgot_lab.domains.npc.layers.memory import WorldLayers

    took: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="kgot_npc_") as folder,
        opened(engine, Path(folder)) as (world, counted),
    ):
        layers = WorldLayers(world, Directions(size["dimension"], min(INNER, size["dimension"])))
        say(f"{engine}: making {size['entities']:,} entities")
        began = time.perf_counter()
        npcs = made_world(layers, size["entities"], size["relationships"], size["chunks"])
        filled = round(time.perf_counter() - began, 1)
        counted()
        say(f"{engine}: made in {filled:g} s, asking {times} times")
        chance, sees = random.Random(WORLD_SEED), []
        for npc in (chance.choice(npcs) for _ in range(times)):
            sees.append(len(world.visible_subgraph(npc).entities))
            for name, ask in (questions(layers, engine, npc) | changes(world, npc, len(sees))).items():
                took.setdefault(name, []).append(milliseconds(ask))
        told = {name: summary(each) for name, each in took.items()}
        told[f"add {BULK:,} relationships"] = bulk(world, npcs)
        say(f"{engine}: asked" + ", indexing the texts" * (engine == "postgres"))
        index = indexed(layers.chunks, times) if engine == "postgres" else None
    run = {"engine": engine, **size, "times": times, "sees": statistics.median(sees), "fill_seconds": filled}
    return {
        **run,
        "busy": round(os.getloadavg()[0], 1),
        "at": f"{datetime.now(UTC):%Y-%m-%d}",
        "milliseconds": told,
        "index": index,
    }


def say(what: str) -> None:
    """A line of progress, which is no result."""
    sys.stderr.write(f"{datetime.now():%H:%M:%S} {what}\n")


def milliseconds(act: Callable[[], object]) -> float:
    """How long an act takes."""
    began = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - began)


def summary(took: Sequence[float]) -> dict[str, float]:
    """The median and the 95th percentile."""
    late = sorted(took)[min(len(took) - 1, round(0.95 * len(took)))]
    return {"median": round(statistics.median(took), 2), "p95": round(late, 2)}


def show(run: dict[str, Any]) -> None:
    """Print a run: each question beside its bare SQL and its target."""
    size = f"{run['entities']:,} entities, {run['relationships']:,} relationships, {run['chunks']:,} chunks of {run['dimension']}"
    print(
        f"\n{run['engine']}: {size}; an NPC sees {run['sees']:g} entities; load of the computer {run['busy']}, {run['at']}"
    )
    print(f"{'milliseconds':28}{'median':>10}{'95 %':>10}{'bare':>10}{'target':>10}")
    rows = run["milliseconds"]
    for name, row in rows.items():
        if name.endswith(", bare"):
            continue
        bare = rows.get(f"{name}, bare", {}).get("median", "")
        target = TARGETS.get(name) if run["entities"] <= SCALE else None
        met = "" if target is None else f"{target:g} {'met' if row['median'] < target else 'MISSED'}"
        print(f"{name:28}{row['median']:10.2f}{row['p95']:10.2f}{bare:>10}{met:>14}")
    if index := run["index"]:
        print(f"all texts, each looked at   {index['exact']['median']:10.2f}{index['exact']['p95']:10.2f}")
        for effort, row in index["efforts"].items():
            print(
                f"by the index, effort {effort:<7}{row['median']:10.2f}{row['p95']:10.2f}    recall@10 {row['recall']:.3f}"
            )
        print(f"the index was made in {index['build_seconds']:g} s, the world in {run['fill_seconds']:g} s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--entities", type=int, nargs="+", default=[1_000], help="several for a curve (default 1000)"
    )
    parser.add_argument("--relationships", type=int, default=0, help="default: 5 for each entity")
    parser.add_argument("--chunks", type=int, default=0, help="default: 10 for each entity")
    parser.add_argument(
        "--dimension", type=int, default=384, help="of the vectors (default 384, as MiniLM's)"
    )
    parser.add_argument("--times", type=int, default=100, help="how often each is asked (default 100)")
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--table", action="store_true", help="show what was measured")
    options = parser.parse_args()
    if min(options.entities) < 20 or options.times < 1 or options.dimension < 2:
        parser.error("--entities are 20 or more, --times 1 or more, --dimension 2 or more")
    if options.relationships > 50 * min(options.entities):
        parser.error("--relationships are 50 for each entity at most")
    report = json.loads(options.out.read_text()) if options.out.exists() else {"runs": []}
    if options.table:
        require_files("python -m benchmarks.npc.npc_latency makes it", options.out)
        for run in report["runs"]:
            show(run)
        return
    report |= {"python": platform.python_version(), "machine": platform.machine(), "targets": TARGETS}
    for entities in options.entities:
        for engine in options.engines:
            size = {"entities": entities, "relationships": options.relationships or 5 * entities}
            size |= {"chunks": options.chunks or 10 * entities, "dimension": options.dimension}
            found = measured(engine, size, options.times)
            same = [
                each
                for each in report["runs"]
                if (each["engine"], *(each[name] for name in size)) == (engine, *size.values())
            ]
            report["runs"] = [each for each in report["runs"] if each not in same] + [found]
            show(found)
            options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
