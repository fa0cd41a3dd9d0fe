"""How well the dimensions that are computed from edges and texts agree with two people's ratings of the
cookbook.

    python -m benchmarks.extraction.dimension_extraction           prints the table, writes
    benchmarks/results/dimension_extraction.json python -m benchmarks.extraction.dimension_extraction --quick
    fewer resamples, nothing is written

The two raters rated the same cells apart. For each dimension: the rank correlation (Spearman's) of the
computed value with the mean of both ratings, over the rated nodes that have a computed value, with a 95%
interval of resampled nodes; and beside it that of one rater with the other on the same nodes, which is what
could be hoped for. A dimension with fewer than 10 such nodes is counted, not judged. Since words speak for
few nodes each, those of all dimensions are judged together too: the computed value against how far the rating
lies above the dimension's mean. Four counts of edges were tried and left out of the package; they stand in
the table as such.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.graph import PropertyGraph
from kgot_lab.io.bundled import bundled
from kgot_lab.kgos.schemas.dimensions.cues import CUES
from kgot_lab.kgos.schemas.dimensions.extracted import NOT_EXTRACTABLE, edges_at, extract_dimensions
from kgot_lab.types import Edge, Node

REPORT = Path(__file__).parents[1] / "results" / "dimension_extraction.json"
LEFT_OUT = {  # what was counted for a dimension and did not agree with the ratings
    "orchestration_complexity": (("requires", "source"), ("part_of", "target")),
    "configuration_depth": (("configures", "target"),),
    "pipeline_composability": (
        ("feeds_into", "source"),
        ("feeds_into", "target"),
        ("composes_with", "source"),
        ("composes_with", "target"),
    ),
    "error_handling_need": (("has_limitation", "source"),),
}
FEWEST, RESAMPLES, SEED = 10, 5_000, 0


def rows(name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file of the cookbook."""
    yield from map(json.loads, bundled(f"cookbook/{name}.jsonl").read_text(encoding="utf-8").splitlines())


def cookbook() -> PropertyGraph:
    """The cookbook without its ratings, and without keywords, which the raters did not see either."""
    nodes = (
        Node(row["id"], (row["type"],), {key: row[key] for key in ("name", "description")})
        for row in rows("nodes")
    )
    return PropertyGraph.of(
        list(nodes), [Edge(row["source"], row["type"], row["target"]) for row in rows("edges")]
    )


def correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Spearman's rank correlation; NaN where one of them is the same everywhere."""
    from scipy.stats import spearmanr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one that is the same everywhere is an answer here
        return float(spearmanr(one, other).statistic)


def judged(computed: NDArray[np.float64], ratings: NDArray[np.float64], resamples: int) -> dict[str, Any]:
    """The correlation of computed values with the mean of ratings, shape (nodes, 2), its interval, and that
    between the raters.
    """
    chance, mean = np.random.default_rng(SEED), ratings.mean(axis=1)
    drawn = chance.integers(0, len(mean), (resamples, len(mean)))
    found = np.array([correlation(computed[each], mean[each]) for each in drawn])
    low, high = np.nanquantile(found, (0.025, 0.975)) if not np.isnan(found).all() else (math.nan, math.nan)
    return {
        "rho": correlation(computed, mean), "low": float(low), "high": float(high),
        "raters": correlation(ratings[:, 0], ratings[:, 1]),
    }  # fmt: skip


def words_together(
    graph: PropertyGraph, computed: Mapping[str, NDArray[np.float64]], raters: list[Any], resamples: int
) -> dict[str, Any]:
    """All cells that words speak for: the value against how far the mean rating lies above the dimension's
    mean.
    """
    cells = []
    for name in CUES:
        rated = {
            id: np.mean([each[id][name] for each in raters])
            for id in graph.ids
            if name in raters[0].get(id, {})
        }
        middle = np.mean(list(rated.values())) if rated else 0.0
        cells += [(computed[name][graph.row(id)], mean - middle) for id, mean in rated.items()]
    values, above = np.array([cell for cell in cells if not math.isnan(cell[0])]).T
    drawn = np.random.default_rng(SEED).integers(0, len(values), (resamples, len(values)))
    rho = [correlation(values[each], above[each]) for each in drawn]
    low, high = np.nanquantile(rho, (0.025, 0.975))
    return {"cells": len(values), "rho": correlation(values, above), "low": float(low), "high": float(high)}


def lines_of(
    graph: PropertyGraph, computed: Mapping[str, NDArray[np.float64]], raters: list[Any], resamples: int
) -> list[dict[str, Any]]:
    """A line for each dimension that has values."""
    lines = []
    for name, column in computed.items():
        rated = [id for id in graph.ids if name in raters[0].get(id, {})]
        there = [id for id in rated if not math.isnan(column[graph.row(id)])]
        line: dict[str, Any] = {
            "dimension": name,
            "rated": len(rated),
            "computed": len(there),
            "left_out": name in LEFT_OUT,
        }
        if len(there) >= FEWEST:
            values = np.array([column[graph.row(id)] for id in there])
            ratings = np.array([[each[id][name] for each in raters] for id in there])
            line |= {key: round(value, 3) for key, value in judged(values, ratings, resamples).items()}
        lines.append(line)
    return sorted(lines, key=lambda each: (each["left_out"], -each.get("rho", -2)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer resamples, nothing is written")
    resamples = 200 if (options := parser.parse_args()).quick else RESAMPLES
    graph = cookbook()
    computed = dict(extract_dimensions(graph).values)
    raters = [{row["id"]: row["ratings"] for row in rows(f"ratings_{rater}")} for rater in "ab"]
    together = words_together(graph, computed, raters, resamples)
    lines = lines_of(
        graph, computed | {name: edges_at(graph, ends) for name, ends in LEFT_OUT.items()}, raters, resamples
    )
    print(f"{'dimension':>30} {'rated':>6} {'computed':>9} {'rho':>7}   95% interval   between raters")
    for line in lines:
        told = (
            f"{line['rho']:7.2f}   {line['low']:5.2f} to {line['high']:5.2f}   {line['raters']:8.2f}"
            if "rho" in line
            else ""
        )
        print(
            f"{line['dimension']:>30} {line['rated']:6} {line['computed']:9} {told}{'   left out' if line['left_out'] else ''}"
        )
    print(
        f"\nall words together: {together['cells']} cells, rho {together['rho']:.2f} ({together['low']:.2f} to {together['high']:.2f})"
    )
    print(f"not extractable: {', '.join(NOT_EXTRACTABLE)}")
    if not options.quick:
        report = {
            "seed": SEED,
            "resamples": RESAMPLES,
            "fewest": FEWEST,
            "rows": lines,
            "words_together": together,
        }
        report["not_extractable"] = NOT_EXTRACTABLE
        REPORT.write_text(json.dumps(report, indent=1).replace("NaN", "null") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
