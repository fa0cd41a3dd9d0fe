"""What is tried of one Cypher engine, each part in a process of its own, since some can crash: run as a
program it is such a process.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kgot_lab.experiments.stores.cypher_candidates import CANDIDATES, Batch, CypherCandidate, LinksByRelation
from kgot_lab.experiments.stores.cypher_shapes import CYPHER_SHAPES, SHAPES_BEGIN_WITH, Shape
from kgot_lab.experiments.stores.wordnet import wordnet


def _shapes(engine: type[CypherCandidate], folder: Path, first: int) -> Iterator[dict[str, Any]]:
    """Whether each shape from some number on is right, and what was there instead."""
    for number, shape in list(enumerate(CYPHER_SHAPES))[first:]:
        yield {"shape": number, "began": True}
        yield {"shape": number, "name": shape.name, "wrong": _wrong(engine, folder / str(number), shape)}


def _wrong(engine: type[CypherCandidate], folder: Path, shape: Shape) -> str:
    candidate = _opened(engine, folder)
    try:
        for statement in SHAPES_BEGIN_WITH:
            candidate.run(statement)
        if shape.look:
            candidate.run(shape.statement, shape.parameters)
        rows = (
            candidate.run(shape.look, reading=True)
            if shape.look
            else candidate.run(shape.statement, shape.parameters, reading=True)
        )
    except Exception as error:
        return f"error: {str(error).strip()[:160]}"
    finally:
        with suppress(Exception):
            candidate.close()
    got, wanted = (list(map(_spelled, each)) for each in (rows, shape.rows))
    return (
        ""
        if (got == wanted if shape.ordered else sorted(got) == sorted(wanted))
        else f"value: {rows!r}"[:160]
    )


def _spelled(row: tuple[Any, ...]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def _opened(engine: type[CypherCandidate], folder: Path, *, reading: bool = False) -> CypherCandidate:
    folder.mkdir(parents=True, exist_ok=True)
    return engine(folder, reading=reading)


def _speed(engine: type[CypherCandidate], folder: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Seconds until the first answer, and median milliseconds of a small write and a small read beside 10,000
    nodes.
    """
    began = time.perf_counter()
    candidate = _opened(engine, folder)
    candidate.run("RETURN 1 AS n", reading=True)
    yield {"start_s": time.perf_counter() - began}
    nodes: Batch = [(f"n{number}", {"rank": number}) for number in range(10_000)]
    links: LinksByRelation = {
        "NEXT": [(f"n{number}", f"n{(number * 7 + 1) % 10_000}") for number in range(10_000)]
    }
    candidate.load("Thing", nodes, links)
    yield {"write_ms": _median(rounds, lambda at: candidate.run(_fact(at)))}
    hop = 'MATCH (a:Thing {{id: "n{}"}})-[r]-(b) RETURN b.id'
    yield {"read_ms": _median(rounds, lambda at: candidate.run(hop.format(at * 37 % 10_000), reading=True))}
    candidate.close()


def _fact(at: int) -> str:
    return f'MERGE (a:Person {{id: "p{at}"}}) MERGE (b:Town {{id: "t{at % 9}"}}) MERGE (a)-[r:BORN_IN]->(b) SET r.year = {at}'


def _median(rounds: int, act: Callable[[int], object]) -> float:
    times = []
    for at in range(rounds):
        began = time.perf_counter()
        act(at)
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def _load(engine: type[CypherCandidate], folder: Path, _: int) -> Iterator[dict[str, Any]]:
    """Seconds to take in the 40,943 nodes and 93,003 edges of WN18RR."""
    graph = wordnet()
    nodes: Batch = [(node.id, dict(node.properties)) for node in graph.nodes]
    links: LinksByRelation = {}
    for source, relation, target in dict.fromkeys(
        (edge.source, "_" + edge.type.replace(" ", "_"), edge.target) for edge in graph.edges
    ):
        links.setdefault(relation, []).append((source, target))
    candidate = _opened(engine, folder)
    began = time.perf_counter()
    candidate.load("Synset", nodes, links)
    seconds = time.perf_counter() - began
    counted = candidate.run("MATCH (a)-[r]->(b) RETURN count(r) AS n", reading=True)[0][0]
    yield {"load_s": seconds, "edges": counted}


def _writing(engine: type[CypherCandidate], folder: Path, number: int) -> Iterator[dict[str, Any]]:
    """Write numbers without an end, saying before and after each; first say which were there."""
    candidate = _opened(engine, folder)
    yield {
        "found": sorted(
            int(row[0]) for row in candidate.run("MATCH (n:Number) RETURN n.value AS v", reading=True)
        )
    }
    while True:
        yield {"begins": number}
        candidate.run(f'CREATE (n:Number {{id: "n{number}", value: {number}}})')
        yield {"done": number}
        number += 1


def _reader(engine: type[CypherCandidate], folder: Path, _: int) -> Iterator[dict[str, Any]]:
    """What a handle that is said to read only lets through."""
    candidate = _opened(engine, folder)
    candidate.run(SHAPES_BEGIN_WITH[0])
    candidate.close()
    candidate = _opened(engine, folder, reading=True)
    for name, statement in engine.attacks.items():
        try:
            candidate.run(statement.replace("PATH", str(folder / "out.csv")), reading=True)
        except Exception:
            continue
        yield {"passed": name}


PARTS_OF_THE_TRIAL: dict[str, Callable[[type[CypherCandidate], Path, int], Iterator[dict[str, Any]]]] = {
    "shapes": _shapes, "speed": _speed, "load": _load, "writing": _writing, "reader": _reader,
}  # fmt: skip


def _tell(engine: str, part: str, folder: Path, number: int) -> None:
    for line in PARTS_OF_THE_TRIAL[part](CANDIDATES[engine], folder, number):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _tell(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    os._exit(0)  # an engine may take its time to end
