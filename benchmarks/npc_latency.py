"""How long a character's hot context and each of its parts take, beside the bare SQL, by the size of the world.

    python benchmarks/npc_latency.py [--entities 1000] [--relationships 5000] [--chunks 10000] [--engines sqlite postgres]

The world is made by a seed: half of the entities are NPCs, each relationship leads from one of them to anything, each location lies in
another, and the vectors of the chunks are random directions. Each question is asked as an NPC drawn by the seed; how many entities such a
one sees is told. "Bare" is SQL with no policy, whose rows are fetched and made into nothing: for GraphRAG on PostgreSQL the query of the
document, on SQLite, which has no vectors, the texts of the neighbours alone. Times are by the clock of this computer, in milliseconds. No
model is asked: what the embedding of a question takes comes on top. Changes are on the disk when they return; relationships that are put
in one change are timed once. For a curve give several numbers of entities; relationships and chunks
grow with them. Results go to benchmarks/results/npc_latency.json, where those of other sizes stay.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

RESULTS = Path(__file__).parent / "results" / "npc_latency.json"
ENGINES = ("sqlite", "postgres")
SEED = 16
ENTRIES = 1_000  # of the log
BULK = 5_000  # relationships that are put in one change
LEADS = {  # what an NPC's relationship is, by the type of what it leads to
    "npc": ("KNOWS", "CHILD_OF", "EMPLOYED_BY"),
    "location": ("LOCATED_AT",),
    "faction": ("MEMBER_OF",),
    "item": ("OWNS",),
    "event": ("PARTICIPATED_IN",),
    "quest": ("QUEST_GIVER",),
}
TYPES = (*LEADS, *["npc"] * (len(LEADS) - 2))  # half of them NPCs

BARE_IDENTITY = """SELECT e.name, e.attributes, r.rel_type, t.name, t.type, r.attributes FROM entities e
  LEFT JOIN relationships r ON r.source_id = e.id LEFT JOIN entities t ON t.id = r.target_id WHERE e.id = :npc"""
_SCOPE = "SELECT r.target_id FROM relationships r WHERE r.source_id = :npc UNION SELECT :npc"
BARE_RAG = {
    "postgres": f"""WITH semantic_matches AS (
  SELECT c.entity_id, c.content, c.embedding OPERATOR(pgvector.<=>) CAST(:vector AS pgvector.vector) AS distance
  FROM chunks c WHERE c.entity_id IN ({_SCOPE}) ORDER BY distance LIMIT 10)
SELECT e.name, e.type, e.attributes, m.content, m.distance
FROM semantic_matches m JOIN entities e ON e.id = m.entity_id ORDER BY m.distance""",
    "sqlite": f"SELECT c.content, c.embedding FROM chunks c WHERE c.entity_id IN ({_SCOPE}) AND :vector IS NOT NULL",
}


class Directions:
    """An embedder that gives each text a random direction, always the same."""

    name, digest = "random directions", hashlib.sha256(b"random directions").hexdigest()

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Any:
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") for text in texts]
        rows = np.array([np.random.default_rng(seed).standard_normal(self.dimension) for seed in seeds])
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@contextmanager
def opened(engine: str, folder: Path) -> Iterator[tuple[Any, Callable[[], object]]]:
    """An empty world on an engine of its own, and what has the engine count its rows, by which it plans."""
    from support.npc_places import at_postgres

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
        with at_postgres(server.conninfo(), "latency") as world, psycopg.connect(server.conninfo(), autocommit=True) as owner:
            yield world, lambda: owner.execute("ANALYZE")
    finally:
        server.stop()


def fill(layers: Any, entities: int, relationships: int, chunks: int) -> list[str]:
    """Make a world of so many things; the ids of its NPCs."""
    from kgot_lab.domains.layers.things import Chunk, LogEntry
    from kgot_lab.domains.npc.things import Entity, Relationship

    chance = random.Random(SEED)

    def id() -> str:
        return str(UUID(int=chance.getrandbits(128), version=4))

    made = [Entity(TYPES[n % len(TYPES)], f"name {n}", {"appearance": f"grey {n}", "mood": "calm"}, id()) for n in range(entities)]
    npcs = [each for each in made if each.type == "npc"]
    places = [each for each in made if each.type == "location"]
    ties = {one.id: Relationship(one.id, other.id, "LOCATED_AT") for one, other in zip(places[1:], places, strict=False)}
    told: dict[Any, Any] = dict(ties)
    while len(told) < relationships:
        other = chance.choice(made)
        tie = Relationship(chance.choice(npcs).id, other.id, chance.choice(LEADS[other.type]))
        told[tie.key] = tie
    layers.world.add(made, told.values())
    ids = [each.id for each in npcs]
    layers.log.append(LogEntry(f"session {n % 10}", f"gold {n}", tuple(chance.sample(ids, 3)), chance.choice(ids)) for n in range(ENTRIES))
    for start in range(0, chunks, 1_000):
        numbers = range(start, min(chunks, start + 1_000))
        layers.chunks.add(Chunk(chance.choice(made).id, f"told of {n}", None if n % 4 else (chance.choice(ids),), id()) for n in numbers)
    return ids


def questions(layers: Any, engine: str, npc: str) -> dict[str, Callable[[], object]]:
    """What is timed, asked as one NPC."""
    from kgot_lab.domains.layers.hot import HotBudget, hot_context
    from kgot_lab.domains.npc.rows import uuids

    memory, chunks, patient = layers.memory(npc), layers.chunks, HotBudget(limit=600)
    asked = {"npc": uuids(npc)[0], "vector": chunks.storage.vector(chunks.vector_of(npc))}
    return {
        "identity, bare": lambda: layers.world.storage.rows(BARE_IDENTITY, {"npc": asked["npc"]}),
        "identity": memory.sight.identity_snapshot,
        "neighbours, 1 step": lambda: layers.world.neighbours(npc),
        "neighbours, 3 steps": lambda: layers.world.neighbours(npc, 3),
        "what it sees": memory.sight.visible_subgraph,
        "log": lambda: memory.log.search("gold"),
        "GraphRAG, bare": lambda: chunks.storage.rows(BARE_RAG[engine], asked),
        "GraphRAG": lambda: memory.query_with_context(npc),
        "hot context": lambda: hot_context(memory, npc, budget=patient),
    }


def changes(world: Any, npc: str, number: int) -> dict[str, Callable[[], object]]:
    """What is timed of changes: each is on the disk when it returns."""
    from kgot_lab.domains.npc import statements as sql
    from kgot_lab.domains.npc.rows import attributes_text, uuids
    from kgot_lab.domains.npc.things import Entity, Relationship

    one = Entity("npc", f"name {number}", {"mood": f"grey {number}"}, npc)
    row = {"id": uuids(npc)[0], "type": one.type, "name": one.name, "attributes": attributes_text(one.attributes), "at": world.now()}

    def bare() -> None:
        with world.storage.changing():
            world.storage.rows(sql.PUT_ENTITY, row)

    return {
        "upsert an entity, bare": bare,
        "upsert an entity": lambda: world.add_entity(one),
        "upsert a relationship": lambda: world.add_relationship(Relationship(npc, npc, f"TYPE_{number % 7}")),
    }


def bulk(world: Any, npcs: Sequence[str]) -> dict[str, float]:
    """The milliseconds that BULK relationships of a new type take, put in one change."""
    from kgot_lab.domains.npc.things import Relationship

    chance = random.Random(SEED + 1)
    new = [Relationship(one, other, "OWES") for one, other in (chance.sample(list(npcs), 2) for _ in range(BULK))]
    began = time.perf_counter()
    world.add([], new)
    took = round(1000 * (time.perf_counter() - began), 1)
    return {"median": took, "p95": took}


def measured(engine: str, size: dict[str, int], times: int) -> dict[str, Any]:
    """The median and the 95th percentile of each question, in a world of some size on an engine."""
    from kgot_lab.domains.layers.memory import WorldLayers

    took: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="kgot_npc_") as folder, opened(engine, Path(folder)) as (world, counted):
        layers = WorldLayers(world, Directions(size["dimension"]))
        npcs = fill(layers, size["entities"], size["relationships"], size["chunks"])
        counted()
        chance, sees = random.Random(SEED), []
        for npc in (chance.choice(npcs) for _ in range(times)):
            sees.append(len(world.visible_subgraph(npc).entities))
            for name, ask in (questions(layers, engine, npc) | changes(world, npc, len(sees))).items():
                began = time.perf_counter()
                ask()
                took.setdefault(name, []).append(1000 * (time.perf_counter() - began))
        told = {name: {"median": round(statistics.median(each), 2), "p95": round(_p95(each), 2)} for name, each in took.items()}
        told[f"add {BULK:,} relationships"] = bulk(world, npcs)
    return {"engine": engine, **size, "times": times, "sees": statistics.median(sees), "milliseconds": told}


def _p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, round(0.95 * len(values)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, nargs="+", default=[1_000], help="several for a curve (default 1000)")
    parser.add_argument("--relationships", type=int, default=0, help="default: 5 for each entity")
    parser.add_argument("--chunks", type=int, default=0, help="default: 10 for each entity")
    parser.add_argument("--dimension", type=int, default=384, help="of the vectors (default 384, as MiniLM's)")
    parser.add_argument("--times", type=int, default=100, help="how often each is asked (default 100)")
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the results go")
    options = parser.parse_args()
    if min(options.entities) < 20 or options.times < 1 or options.dimension < 2:
        parser.error("--entities are 20 or more, --times 1 or more, --dimension 2 or more")
    if options.relationships > 5 * min(options.entities):
        parser.error("--relationships are 5 for each entity at most")
    sys.path.append(str(Path(__file__).parents[1] / "tests"))  # where worlds are opened on a server
    report = json.loads(options.out.read_text()) if options.out.exists() else {"runs": []}
    report |= {"python": platform.python_version(), "machine": platform.machine(), "seed": SEED}
    for entities in options.entities:
        for engine in options.engines:
            size = {"entities": entities, "relationships": options.relationships or 5 * entities}
            size |= {"chunks": options.chunks or 10 * entities, "dimension": options.dimension}
            found = measured(engine, size, options.times)
            same = [each for each in report["runs"] if (each["engine"], *(each[name] for name in size)) == (engine, *size.values())]
            report["runs"] = [each for each in report["runs"] if each not in same] + [found]
            print(f"{engine}: {', '.join(f'{many:,} {name}' for name, many in size.items())}; an NPC sees {found['sees']:g} entities")
            for name, row in found["milliseconds"].items():
                print(f"  {name:26} median {row['median']:9.2f} ms   95th percentile {row['p95']:9.2f} ms", flush=True)
    options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
