"""A real graph of some size: WordNet's synsets and relations, for measuring stores."""

from __future__ import annotations

import csv
import gzip
import json
from functools import cache

from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.types import Edge, Node


@cache
def wordnet() -> PropertyGraph:
    """WN18RR with names and glosses: 40,943 nodes, and a typed edge for each of the 93,003 triples."""
    folder = bundled_path("wn18rr-text")
    with gzip.open(folder / "nodes.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = list(map(json.loads, lines))
    nodes = [
        Node(record["id"], ("Synset",), {"name": record["name"], "description": record["description"]})
        for record in records
    ]
    with gzip.open(folder / "triples.tsv.gz", "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    return PropertyGraph.of(
        nodes, (Edge(row["head"], row["relation"].strip("_").replace("_", " "), row["tail"]) for row in rows)
    )
