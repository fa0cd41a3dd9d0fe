"""Check data/cookbook by the twelve rules of a knowledge graph, check its ratings, and count its nodes and
edges by type.

Types and what they may join come from VOCABULARY.md, dimensions from RATING.md. What is wrong is printed with
the number of its rule (0: what this graph asks besides), and the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any

COOKBOOK = Path(__file__).parent.parent / "cookbook"
LEVELS = ["literal", "goal", "benefit"]
ACYCLIC = {
    "requires": "9 ERROR",
    "feeds_into": "11 ERROR",
    "part_of": "0 ERROR",
    "prerequisite_of": "0 ERROR",
}
Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    """The rows of a file of JSON lines, in order; rule 8: a line that is no JSON ends the check with its
    number.
    """
    found = []
    for number, line in enumerate((COOKBOOK / name).read_text(encoding="utf-8").splitlines(), start=1):
        try:
            found.append(json.loads(line))
        except ValueError as error:
            sys.exit(f"rule 8 ERROR: {name} line {number}: {error}")
    return found


def table(name: str, head: str) -> dict[str, list[str]]:
    """A Markdown table by the first cells of its rows; `head` is how its first line begins."""
    block = (COOKBOOK / name).read_text(encoding="utf-8").split(f"\n| {head} |", 1)[1].split("\n\n", 1)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
    return {first: rest for first, *rest in cells}


def twice(values: Iterable[Hashable]) -> list[Hashable]:
    return [value for value, count in Counter(values).items() if count > 1]


def circle(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """The nodes on circles, or between two: what is left when edges into nodes that lead nowhere are taken
    away again and again.
    """
    left, before = set(pairs), None
    while left != before:
        before, sources = left, {source for source, _ in left}
        left = {pair for pair in left if pair[1] in sources}
    return {source for source, _ in left}


def of_nodes(nodes: list[Row]) -> Iterator[str]:
    types = table("VOCABULARY.md", "type | meaning")
    for node in nodes:
        if not node["name"].strip():
            yield f"1 ERROR: {node['id']} has no name"
        if node["type"] not in types or not node["id"].startswith(f"{node['type']}:"):
            yield f"2 ERROR: {node['id']} has the type {node['type']}"
        if (
            not node["description"]
            or list(node["intent_keywords"]) != LEVELS
            or not all(node["intent_keywords"].values())
        ):
            yield f"0 ERROR: {node['id']} lacks a description, or keywords on a level"
    for values in (
        [node["id"] for node in nodes],
        [node["name"].casefold() for node in nodes],
        [node["description"] for node in nodes],
    ):
        yield from (f"0 ERROR: there twice: {value}" for value in twice(values))


def of_edges(types: dict[str, str], edges: list[tuple[str, str, str]]) -> Iterator[str]:
    kinds = table("VOCABULARY.md", "type | meaning | from")
    for source, type, target in edges:
        shown = f"{source} {type} {target}"
        if {source, target} - types.keys():
            yield f"3 ERROR: {shown}: an end is missing"
        elif source == target:
            yield f"4 WARNING: {shown}"
        elif type not in kinds:
            yield f"7 WARNING: {shown}: no such type"
        elif not all(
            allowed == "any" or types[end] in allowed.split(", ")
            for allowed, end in zip(kinds[type][1:3], (source, target), strict=True)
        ):
            yield f"0 ERROR: {shown}: it may not join these types"
        elif kinds[type][3] == "yes" and source > target:
            yield f"0 ERROR: {shown}: both ways, so write it in the order of ids"
    yield from (f"5 WARNING: there twice: {edge}" for edge in twice(edges))
    yield from (
        f"6 WARNING: {id} has no edge"
        for id in types.keys() - {end for source, _, target in edges for end in (source, target)}
    )
    for type, rule in ACYCLIC.items():
        if found := circle((source, target) for source, each, target in edges if each == type):
            yield f"{rule}: {type} goes in a circle among {', '.join(sorted(found))}"


def of_limitations(nodes: list[Row], edges: list[tuple[str, str, str]]) -> Iterator[str]:
    limited = defaultdict(set)
    for source, type, target in edges:
        if type == "has_limitation":
            limited[source].add(target)
    limitations = {target for targets in limited.values() for target in targets}
    helped = {source for source, type, _ in edges if type == "has_workaround"}
    said = {node["id"] for node in nodes if node.get("no_workaround")}
    yield from (
        f"10 WARNING: {id} has a workaround and nothing has that limitation" for id in helped - limitations
    )
    for id in limitations | limited.keys():
        if bool(helped & (limited.get(id) or {id})) == (id in said):
            yield f"12 INFO: {id} should have a workaround or say that there is none, and not both"


def of_ratings(types: dict[str, str]) -> Iterator[str]:
    cells = {row["id"]: row["dimensions"] for row in rows("cells.jsonl")}
    described, always = table("RATING.md", "dimension"), table("RATING.md", "type")
    for id, type in types.items():
        missing = set(always[type][0].split(", ")) - set(cells.get(id, ())) if type in always else set()
        if wrong := missing | set(cells.get(id, ())) - described.keys():
            yield f"0 ERROR: cells.jsonl: {id} against RATING.md: {', '.join(sorted(wrong))}"
    for path in sorted(COOKBOOK.glob("ratings_*.jsonl")):
        given = {row["id"]: row["ratings"] for row in rows(path.name)}
        if {id: sorted(values) for id, values in given.items()} != cells:
            yield f"0 ERROR: {path.name} does not rate the cells of cells.jsonl"
        if wrong := {
            id
            for id, values in given.items()
            if not all(re.fullmatch(r"0\.\d|1\.0", repr(value)) for value in values.values())
        }:
            yield f"0 ERROR: {path.name}: not in tenths from 0.0 to 1.0: {', '.join(sorted(wrong))}"


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    nodes, edges = (
        rows("nodes.jsonl"),
        [(row["source"], row["type"], row["target"]) for row in rows("edges.jsonl")],
    )
    types = {node["id"]: node["type"] for node in nodes}
    faults = [*of_nodes(nodes), *of_edges(types, edges), *of_limitations(nodes, edges), *of_ratings(types)]
    if [node["id"] for node in nodes] != sorted(types) or edges != sorted(edges):
        faults.append("0 ERROR: the rows are not in order")
    for what, found in (
        ("nodes", [node["type"] for node in nodes]),
        ("edges", [type for _, type, _ in edges]),
    ):
        print(
            f"{len(found)} {what}: {', '.join(f'{count} {type}' for type, count in Counter(found).most_common())}"
        )
    print(f"{sum(len(row['dimensions']) for row in rows('cells.jsonl'))} cells to rate")
    print("\n".join(f"rule {fault}" for fault in faults) or "all rules hold")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
