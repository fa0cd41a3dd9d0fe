"""Do two texts tell the same mechanism? A hundred pairs that nothing was fitted on, near and far, analogous or not.

python -m benchmarks.structure.story_pairs          # what needs no language model, and the tables
python -m benchmarks.structure.story_pairs --model local    # asks it too; goes on after a stop

The plan is in benchmarks/results/structure/story_pairs.md, written before the first score.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.roc import roc_area
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.delta_edges import compare_pairs, delta_edges
from kgot_lab.analogy.linguistic import LinguisticSkeletons
from kgot_lab.analogy.skeletons import make_skeletons
from kgot_lab.embedding.vectors import minilm
from kgot_lab.evaluation.significance import proportion
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal
from kgot_lab.graph.property_graph import Node, PropertyGraph
from kgot_lab.io.files import bundled_path, write_atomically
from kgot_lab.llm import connect
from kgot_lab.text.words import content_words
from kgot_lab.types import LLM, Json, Message, Prompt

RESULTS = Path(__file__).parents[1] / "results" / "structure"
SCORES = RESULTS / "story_pairs.jsonl"
CONTROLS = ("shared words", "embeddings", "minus embeddings")
SYSTEMS = ("skeletons", "delta", "alignment", "mechanism")
_STATE = "State the mechanism of the text in one sentence. Write X, Y and Z for persons and things."
_STATED = (
    "The innkeeper watered his wine a little each week. The guests, who drank it every day, noticed nothing, "
    "until a stranger tasted it and laughed.",
    "X worsens Y in steps too small for those who are used to it to notice, and only Z, who is new, sees it.",
    "Ants guard the acacia from goats because it feeds them. When the goats were fenced out, the tree stopped "
    "feeding the ants, the ants left, and beetles killed it.",
    "X pays Y to ward off Z; without Z, X stops paying, Y leaves, and X dies of what Y had also warded off.",
)
_SAME = "Do both sentences state the same mechanism? Reply yes or no. Reply no if causes, roles or the end differ."


def load_pairs() -> list[dict[str, Json]]:
    """Load the pairs, each with the keys id, cell, analogous, first and second."""
    lines = (bundled_path("story-pairs") / "pairs.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def score_without_model(pairs: Sequence[dict]) -> dict[str, dict[str, float]]:
    """Return the scores of each pair by id, of the controls and of what the package computes."""
    texts = [(pair["first"], pair["second"]) for pair in pairs]
    embedder = minilm()
    aligner = Aligner(embedder)
    skeletons = make_skeletons([text for pair in texts for text in pair], LinguisticSkeletons())
    compared = compare_pairs(texts, skeletons, embedder)
    scores = {}
    for pair, (first, second), found in zip(pairs, texts, compared, strict=True):
        one, two = set(content_words(first)), set(content_words(second))
        scores[pair["id"]] = {
            "shared words": len(one & two) / len(one | two),
            "embeddings": found.raw,
            "minus embeddings": -found.raw,
            "skeletons": found.skeleton,
            "delta": found.skeleton - found.raw,
            "alignment": float(aligner.similarity(first, [second])[0]),
        }
    return scores


def has_edge(pairs: Sequence[dict]) -> dict[str, bool]:
    """Return for each pair whether the package joins its texts by a delta edge, with all settings as users get them."""
    embedder = minilm()
    aligner = Aligner(embedder)
    joined = {}
    for pair in pairs:
        texts = pair["first"], pair["second"]
        graph = PropertyGraph.of(
            Node(str(number), properties={"text": text}) for number, text in enumerate(texts)
        )
        skeletons = make_skeletons(texts, LinguisticSkeletons())
        joined[pair["id"]] = len(delta_edges(graph, skeletons, embedder, verifier=aligner)) > 0
    return joined


def score_mechanisms(pair: dict, llm: LLM) -> dict[str, Json]:
    """Return the mechanism of each text as the model states it, and how far it holds both for the same.

    The score is the mean of the log-odds of "yes", with the sentences in either order.
    """
    shots = [Message(("user", "assistant")[number % 2], text) for number, text in enumerate(_STATED)]
    stated = []
    for text in (pair["first"], pair["second"]):
        messages = Message("system", _STATE), *shots, Message("user", text)
        stated.append(llm(Prompt(messages, None, 0.0, 0, 80)).text.strip().splitlines()[0])
    odds = []
    for one, other in (stated, stated[::-1]):
        messages = Message("system", _SAME), Message("user", f"1. {one}\n2. {other}")
        reply = llm(Prompt(messages, None, 0.0, 0, 2, likelihood=True))
        sure = min(max(math.exp(reply.logprob or 0.0), 1e-4), 1 - 1e-4)
        says_so = reply.text.strip().casefold().startswith("yes")
        odds.append((1 if says_so else -1) * math.log(sure / (1 - sure)))
    return {"stated": stated, "mechanism": sum(odds) / 2}


def tables(rows: Sequence[dict]) -> list[Grid]:
    """Tabulate how well each system tells analogous pairs from others, and how precise delta edges are."""
    lines = []
    for system in (*CONTROLS, *SYSTEMS):
        known = [row for row in rows if system in row["scores"]]
        if known:
            areas = [
                _area([row for row in known if row["cell"].startswith(kind)], system)
                for kind in ("near", "far", "")
            ]
            lines.append((system, str(len(known)), *map(format_decimal, areas)))
    edges = []
    for kind in ("near", "far", ""):
        some = [row for row in rows if row["cell"].startswith(kind)]
        joined = [row for row in some if row["edge"]]
        right = sum(row["analogous"] for row in joined)
        if joined:
            low = proportion(right, len(joined))
            span = f"{format_decimal(low.mean)} [{format_decimal(low.low)}, {format_decimal(low.high)}]"
            edges.append((kind or "all", str(len(some)), str(len(joined)), str(right), span))
    areas_grid = Grid(
        "Area under the ROC curve, analogous pairs against others (.5 is chance)",
        ("system", "pairs", "near", "far", "all"), tuple(tuple(map(Cell, line)) for line in lines),
    )  # fmt: skip
    return [
        areas_grid,
        Grid(
            "Delta edges",
            ("pairs", "of", "joined", "analogous", "precision"),
            tuple(tuple(map(Cell, e)) for e in edges),
        ),
    ]


def _area(rows: Sequence[dict], system: str) -> float:
    def values(kind: bool) -> list[float]:
        return [row["scores"][system] for row in rows if row["analogous"] is kind]

    return roc_area(values(True), values(False))


def main() -> None:
    """Score what has no score yet, keep it, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="also let this model state and compare the mechanisms")
    given = parser.parse_args()
    pairs = load_pairs()
    rows = [json.loads(line) for line in SCORES.read_text("utf-8").splitlines()] if SCORES.exists() else []
    if not rows:
        scores, joined = score_without_model(pairs), has_edge(pairs)
        rows = [
            {"id": pair["id"], "cell": pair["cell"], "analogous": pair["analogous"], "edge": joined[pair["id"]], "scores": scores[pair["id"]]}
            for pair in pairs
        ]  # fmt: skip
        _keep(rows)
    if given.model:
        llm = connect(given.model)
        for pair, row in zip(pairs, rows, strict=True):
            if "mechanism" not in row["scores"]:
                found = score_mechanisms(pair, llm)
                row["scores"]["mechanism"], row["stated"] = found["mechanism"], found["stated"]
                _keep(rows)
    for grid in tables(rows):
        print(grid.markdown)


def _keep(rows: Sequence[dict]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_atomically(SCORES, "".join(lines), "the scores")


if __name__ == "__main__":
    main()
