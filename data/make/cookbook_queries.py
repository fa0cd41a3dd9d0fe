"""Check the queries of data/cookbook and say how many words they share with their gold; with --freeze, split
them and fix them by hash.

The form is that of QUERIES.md. What is wrong is printed, and the exit status is then 1. --freeze splits all
queries that are there, and writes the two halves and FROZEN.json, which it does not replace.
"""

import argparse
import hashlib
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from statistics import mean

from cookbook import COOKBOOK, LEVELS, Row, rows, table, twice

SEED = 20261124
HALVES = ("queries_tuning.jsonl", "queries_locked.jsonl")
FIXED = (*HALVES, "nodes.jsonl", "edges.jsonl")
STOP = set(
    "a an and are as at be but by can do does for from get go has have how i if in is it its me my no not of on or our so".split()
)
STOP |= set(
    "than that the them then they thing this to up us want we what when where which who will with without you".split()
)


def of_query(
    query: Row, nodes: dict[str, Row], joined: dict[str, dict[str, list[str]]], intents: set[str]
) -> Iterator[str]:
    """What is wrong with one query; `joined` holds the targets of each edge type by source."""
    strict, lenient, plan = query["strict"], query["lenient"], query.get("plan", [])
    known, out = query["level"] in [*LEVELS, "out_of_scope"], query["level"] == "out_of_scope"
    if not (known and query["text"].strip()):
        yield "has no text, or the level is unknown"
    if not {query["intent"], *query["other_intents"]} <= intents | {"none"} or twice(
        [query["intent"], *query["other_intents"]]
    ):
        yield "names an intent that is unknown, or one twice"
    if not {*lenient, *plan} <= nodes.keys() or twice(strict) or twice(lenient) or twice(plan):
        yield "names a node that is not there, or one twice"
    elif not {*strict, *plan} <= set(lenient):
        yield "holds strict nodes or steps that are not among the lenient ones"
    elif not (0 if out else 1) <= len(strict) <= (0 if out else 5) or len(lenient) > (0 if out else 20):
        yield "has too few or too many gold nodes"
    elif query["level"] in ("goal", "benefit") and (
        said := said_outright(query["text"], [nodes[id] for id in strict])
    ):
        yield f"repeats a name or a keyword: {', '.join(said)}"
    if "plan" in query and not (query["level"] == "goal" and 2 <= len(plan) <= 5):
        yield "has a plan of fewer than 2 or more than 5 steps, or is no goal"
    if "can_it" in query and query["can_it"] != (told := verdict(query["can_it"]["of"], nodes, joined)):
        yield f"is answered by {told}"
    if "can_it" in query and not set(query["can_it"]["of"]) <= set(strict):
        yield "asks about what is not among its strict nodes"


def verdict(asked: list[str], nodes: dict[str, Row], joined: dict[str, dict[str, list[str]]]) -> Row:
    """Whether what is asked about can be done, by the rule in QUERIES.md."""
    limitations = sorted({target for id in asked for target in joined["has_limitation"][id]})
    around = joined["has_workaround"]
    blocked = any(not around[id] and nodes[id].get("blocking", True) for id in limitations)
    word = "unknown" if not asked else "no" if blocked else "yes_with_limitations" if limitations else "yes"
    return {
        "of": asked,
        "verdict": word,
        "limitations": limitations,
        "workarounds": sorted({to for id in limitations for to in around[id]}),
    }


def said_outright(text: str, gold: list[Row]) -> list[str]:
    """The names and keywords of two words and more that stand in a text as they are."""
    terms = [term for node in gold for term in (node["name"], *keywords(node))]
    return [term for term in terms if len(spaced(term).split()) > 1 and spaced(term) in spaced(text)]


def keywords(node: Row) -> list[str]:
    return [word for words in node["intent_keywords"].values() for word in words]


def spaced(text: str) -> str:
    """A text as words in small letters between spaces."""
    return f" {' '.join(re.findall('[a-z0-9]+', text.casefold()))} "


def stems(text: str) -> set[str]:
    """The words of a text that carry meaning, each by its first five letters."""
    return {word[:5] for word in spaced(text).split() if word not in STOP}


def overlap(queries: list[Row], nodes: dict[str, Row]) -> Iterator[str]:
    """For each level, the mean share of a query's words that its strict nodes have in their names, keywords
    and descriptions.
    """
    for level in LEVELS:
        shares = defaultdict(list)
        for query in (query for query in queries if query["level"] == level):
            gold, asked = [nodes[id] for id in query["strict"]], stems(query["text"])
            texts = {
                "names": [node["name"] for node in gold],
                "keywords": [word for node in gold for word in keywords(node)],
                "descriptions": [node["description"] for node in gold],
            }
            texts["any of them"] = [text for found in texts.values() for text in found]
            for part, found in texts.items():
                shares[part].append(len(asked & stems(" ".join(found))) / len(asked))
        yield f"{level}: {', '.join(f'{part} {mean(values):.2f}' for part, values in shares.items())}"


def halves(queries: list[Row]) -> tuple[list[Row], list[Row]]:
    """Of each two of like level, kind of gold and intent, one by chance for tuning and the other to be
    locked.
    """
    draw, parts, alike = random.Random(SEED), ([], []), defaultdict(list)
    for query in sorted(queries, key=lambda query: (query["intent"], query["id"])):
        alike[query["level"], "plan" in query, "can_it" in query].append(query)
    for _, group in sorted(alike.items()):
        for pair in zip(group[::2], group[1::2], strict=True):
            for part, query in zip(parts, draw.sample(pair, 2), strict=True):
                part.append(query)
    return tuple(sorted(part, key=lambda query: query["id"]) for part in parts)


def hashes() -> dict[str, str]:
    return {name: hashlib.sha256((COOKBOOK / name).read_bytes()).hexdigest() for name in FIXED}


def faults() -> Iterator[str]:
    """What is wrong with the queries that are there, one after another and together."""
    nodes = {node["id"]: node for node in rows("nodes.jsonl")}
    joined = defaultdict(lambda: defaultdict(list))
    for edge in rows("edges.jsonl"):
        joined[edge["type"]][edge["source"]].append(edge["target"])
    intents = set(table("QUERIES.md", "intent | meaning"))
    parts = [rows(name) for name in HALVES if (COOKBOOK / name).exists()]
    queries = [query for part in parts for query in part]
    for query in queries:
        yield from (f"{query['id']} {fault}" for fault in of_query(query, nodes, joined, intents))
    for field in ("id", "text"):
        yield from (f"there twice: {value}" for value in twice(query[field].casefold() for query in queries))
    if (COOKBOOK / "FROZEN.json").exists():
        if json.loads((COOKBOOK / "FROZEN.json").read_text(encoding="utf-8")) != {
            "seed": SEED,
            "sha256": hashes(),
        }:
            yield "not as they were frozen"
        if tuple(parts) != halves(queries):
            yield "not split by the seed"


def freeze() -> None:
    """Write both halves and FROZEN.json."""
    queries = [query for name in HALVES if (COOKBOOK / name).exists() for query in rows(name)]
    for name, part in zip(HALVES, halves(queries), strict=True):
        (COOKBOOK / name).write_text(
            "".join(json.dumps(query, ensure_ascii=False) + "\n" for query in part), encoding="utf-8"
        )
    (COOKBOOK / "FROZEN.json").write_text(
        json.dumps({"seed": SEED, "sha256": hashes()}, indent=1) + "\n", encoding="utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--freeze", action="store_true", help="split the queries and fix them by hash")
    if (asked := parser.parse_args().freeze) and (COOKBOOK / "FROZEN.json").exists():
        sys.exit("they are frozen")
    found = list(faults())
    if asked and not found:
        freeze()
    parts = {name: rows(name) for name in HALVES if (COOKBOOK / name).exists()}
    for name, part in parts.items():
        print(
            f"{name}: {', '.join(f'{count} {level}' for level, count in Counter(query['level'] for query in part).items())}"
        )
    if not found:
        print("words shared with the gold:")
        print(
            "\n".join(
                overlap(
                    [query for part in parts.values() for query in part],
                    {node["id"]: node for node in rows("nodes.jsonl")},
                )
            )
        )
    print("\n".join(found) or "nothing is wrong")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
