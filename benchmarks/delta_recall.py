"""Do delta edges help a walk over a graph of stories to find analogies? Writes benchmarks/results/delta_recall.json.

Decided before the first run. Graph: the texts of a set (storyanalogy-mc: sources and choices; parallelparc: sources and targets of the
human-checked pairs; analobench: the sentences), and, as bare hubs, the nouns that 2 to 10 of them share. Hubs and not direct edges,
because two texts that share two rare nouns are then joined in two ways, which the walk counts. A query is the source of an analogy,
relevant are its analogues (analobench: the sentences of its cluster); its own node is in the graph and opens the walk, but is dropped
from the ranking, and so are texts of which nobody said whether they are analogous to it.
"traverse": 5 hits by meaning, then what one walks to from them through the nouns, hits and walked taking turns, the rest by meaning.
"traverse + delta": the same, with structural_isomorphism edges walked as well: at the specified thresholds and at thresholds calibrated
on the develop pairs of the set (F1 at the share of analogous pairs that the set has), each with and without a verifier that may veto.
Controls: the same delta edges with their targets in another order (five times, averaged), as many `similarity` edges (the texts most
alike), and the edges found with the skeletons of other texts of like length.
Primary: recall@10, "traverse + delta, calibrated, verified" against "traverse", the three sets one family (Holm). All else explains.
"ceiling" walks the analogous pairs themselves, and shows what room there is for edges.

Added after the first run on develop queries, and so exploratory: comparisons with "entry only", because the nouns turned out to do harm on
all three sets; "delta alone", a walk without the nouns; and similarity edges that the verifier let stand. The control with skeletons of
others had kept the calibrated thresholds, and with them fewer edges (a tenth to two thirds); it now has as many, found by lowering the
threshold of the skeletons. The thresholds are calibrated on the pairs that develop queries ask for, which flatters; the locked part tells.

Develop queries only, unless --open: then the locked ones too, apart. Texts of the locked part stand in the graph, as in any search;
nothing is chosen on them. A set that is finished is kept in delta_recall.partial, so an interrupted run goes on with the next.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from delta_graphs import ALIKE, ALIKE_VERIFIED, ALONE, CHOSEN, CONTROLS, SETS, SHUFFLED, Case, case, edge_sets

from kgot_lab.analogy.delta_edges import DELTA, SIMILARITY, with_edges
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import minilm
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.evaluation.significance import Numbers, counts, holm, interval, sign_flip_p, smallest_detectable
from kgot_lab.experiments.recall.systems import shuffled
from kgot_lab.experiments.structure.analogy_pairs import AnalogyPairs, pair
from kgot_lab.experiments.structure.nouns import Nouns
from kgot_lab.retrieval.passthrough import Walk, traverse
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Edge, Ranking

RESULT = Path(__file__).parent / "results" / "delta_recall.json"
PARTIAL = RESULT.with_suffix(".partial")
MEASURES = ("recall@5", "recall@10")
ENTRY, TRAVERSE, CEILING = "entry only", "traverse", "ceiling"
PRIMARY = {"system": CHOSEN, "against": TRAVERSE, "measure": "recall@10"}
WALK = Walk(interleaved=True, rest=True)
SHUFFLES = range(5)
Row = dict[str, object]


# --- measuring --------------------------------------------------------------------------------------------------------


def stages(one: Case, chosen: dict[str, Sequence[Edge]], truth: Iterable[Edge]) -> Iterator[tuple[str, list[Stage]]]:
    """Each system as a stage, one that is drawn by lot as several."""
    yield ENTRY, [one.entry]
    yield TRAVERSE, [traverse(one.graph, one.entry, walk=WALK)]
    for system, edges in (chosen | {CEILING: list(truth)}).items():
        kind = SIMILARITY if system in (ALIKE, ALIKE_VERIFIED) else DELTA
        rewired = [shuffled(with_edges(one.texts, edges), seed).edges for seed in SHUFFLES] if system == SHUFFLED else [edges]
        walk = replace(WALK, types=(DELTA,)) if system == ALONE else replace(WALK, computed=(kind,))
        yield system, [traverse(with_edges(one.graph, some, kind), one.entry, walk=walk) for some in rewired]


def measured(one: Case, embedder: Embedder, say: Callable[[str], None]) -> tuple[list[Row], Row]:
    """A row for each part, system and measure, with the value of each query; and the facts of the graph and of its edges."""
    chosen, made = edge_sets(one, embedder)
    say(f"edges: {', '.join(f'{len(edges):,}' for edges in chosen.values())}")
    rows: list[Row] = []
    parts = {"develop": one.pairs.develop, "locked": one.pairs.opened}
    for part, data in one.parts.items():
        judged = parts[part]
        for system, several in stages(one, chosen, [Edge(*_ends(both)) for both in sorted(judged.analogous)]):
            found = np.mean([values(data, leaving_out(stage, one.dropped)) for stage in several], axis=0)
            for measure, own in zip(MEASURES, found, strict=True):
                rows.append({"part": part, "system": system, "measure": measure, "questions": [round(float(value), 6) for value in own]})
        say(f"{part}: {len(data.queries)} queries")
    nouns, curated = len(one.graph) - len(one.texts), len(one.graph.edges)
    facts = {"texts": len(one.texts), "nouns": nouns, "curated": curated, **made}
    of_their_own = {system: edges for system, edges in chosen.items() if system not in (ALONE, SHUFFLED)}  # these have those of CHOSEN
    told = {part: {system: edge_facts(parts[part], edges) for system, edges in of_their_own.items()} for part in one.parts}
    return rows, {**facts, "edges": told}


def values(data: Dataset, stage: Stage) -> Numbers:
    """Each measure for each query, shape (measures, queries)."""
    scores = score(run(stage, data.queries, keep=10), data.qrels, MEASURES)
    return np.array([list(scores.per_query(measure).values()) for measure in MEASURES])


def leaving_out(stage: Stage, out: Mapping[str, frozenset[str]]) -> Stage:
    """The stage without what the ranking of a query leaves out."""

    def step(ranking: Ranking) -> Ranking:
        found, gone = stage(ranking), out[ranking.query.id]
        return Ranking(ranking.query, tuple(hit for hit in found.hits if hit.id not in gone))

    return Stage(stage.name, step)


def edge_facts(part: AnalogyPairs, edges: Iterable[Edge]) -> Row:
    """How many edges there are, how many of them the part judges, and how many are right, of so many analogous pairs."""
    ends = {pair(edge.source, edge.target) for edge in edges}
    judged = [both for both in ends if part.judges(*both)]
    share = round(len(judged) and sum(both in part.analogous for both in judged) / len(judged), 5)
    right, wanted = sum(both in part.analogous for both in judged), len(part.analogous)
    return {
        "edges": len(ends),
        "judged": len(judged),
        "right": right,
        "of": wanted,
        "precision": share,
        "by_lot": round(part.prevalence, 5),
    }


def _ends(both: tuple[str, str]) -> tuple[str, str, str]:
    return both[0], DELTA, both[1]


# --- what follows from the values ---------------------------------------------------------------------------------------


def derived(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """From the values of the queries alone: the rows with mean and interval, and the differences that tell.

    These are every system against "traverse", the chosen one against each control, and delta edges with and without the nouns against
    the entry alone; where the locked part is there, on all queries too.
    """
    whole = [{**{name: row[name] for name in ("dataset", "part", "system", "measure")}, **estimate(_own(row))} for row in rows]
    value = {(row["dataset"], row["part"], row["measure"], row["system"]): _own(row) for row in rows}
    for dataset, measure, system in dict.fromkeys((row["dataset"], row["measure"], row["system"]) for row in rows):
        both = [value[dataset, part, measure, system] for part in ("develop", "locked") if (dataset, part, measure, system) in value]
        if len(both) == 2:
            value[dataset, "all", measure, system] = np.concatenate(both)
    gaps: list[Row] = []
    for dataset, part, measure, system in value:
        for against in [TRAVERSE] * (system != TRAVERSE) + [*CONTROLS] * (system == CHOSEN) + [ENTRY] * (system in (CHOSEN, ALONE)):
            gap = value[dataset, part, measure, system] - value[dataset, part, measure, against]
            same = {"dataset": dataset, "part": part, "measure": measure, "system": system, "against": against}
            gaps.append({**same, **difference(gap)})
    return [{**told, "questions": row["questions"]} for told, row in zip(whole, rows, strict=True)], gaps


def _own(row: Row) -> Numbers:
    return np.array(row["questions"], np.float64)


def estimate(numbers: Numbers) -> Row:
    found = interval(numbers)
    return {"mean": round(found.mean, 4), "low": round(found.low, 4), "high": round(found.high, 4), "n": found.n}


def difference(gap: Numbers) -> Row:
    wins, ties, losses = counts(gap)
    tests = {"p": round(sign_flip_p(gap), 4), "detectable": round(smallest_detectable(gap), 4)}
    return {**estimate(gap), **tests, "wins": wins, "ties": ties, "losses": losses}


def primary(gaps: list[Row]) -> list[Row]:
    """The comparisons decided on beforehand, the p of each part corrected for being three."""
    chosen = [gap for gap in gaps if all(gap[key] == value for key, value in PRIMARY.items())]
    found = []
    for part in dict.fromkeys(gap["part"] for gap in chosen):
        same = [gap for gap in chosen if gap["part"] == part]
        found += [{**gap, "p_holm": p} for gap, p in zip(same, holm([float(str(gap["p"])) for gap in same]), strict=True)]
    return found


def lines(result: Mapping[str, object]) -> str:
    """The result as JSON with a line for each row, so that a change can be read."""
    parts = []
    for name, value in result.items():
        rows = ",\n  ".join(map(json.dumps, value)) if isinstance(value, list) else ""
        parts.append(f' "{name}": ' + (f"[\n  {rows}\n ]" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def table(result: Mapping[str, list[Row]]) -> str:
    """What a reader looks at first: each system on each set, and the comparisons decided on beforehand."""
    told = []
    for row in (row for row in result["systems"] if row["measure"] == PRIMARY["measure"]):
        told.append(f"{row['dataset']:16} {row['part']:8} {row['system']:42} {row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}]")
    others = [gap for gap in result["differences"] if gap["measure"] == PRIMARY["measure"] and gap["against"] != TRAVERSE]
    for gap in [*result["primary"], *others]:
        span = f"{gap['mean']:+.3f} [{gap['low']:+.3f}, {gap['high']:+.3f}]"
        told.append(
            f"{gap['dataset']}, {gap['part']}: {gap['system']} - {gap['against']} {span}, p {gap['p']}"
            + (f", Holm {gap['p_holm']:.4f}" if "p_holm" in gap else "")
        )
    return "\n".join(told)


# --- running ----------------------------------------------------------------------------------------------------------


def measure(parts: Sequence[str]) -> tuple[list[Row], list[Row]]:
    """Every set that an earlier, interrupted run did not finish: the rows of the systems, and the facts of the graphs."""
    kept = [json.loads(line) for line in PARTIAL.read_text(encoding="utf-8").splitlines()] if PARTIAL.exists() else []
    done = {each["dataset"]: each for each in kept if each["parts"] == list(parts)}
    began = time.perf_counter()
    embedder, nouns = minilm(), Nouns()
    for name in SETS:
        if name not in done:
            one = case(name, parts, embedder, nouns)
            rows, facts = measured(one, embedder, told_of(name, began))
            done[name] = {"dataset": name, "parts": list(parts), "rows": rows, "facts": facts}
            with PARTIAL.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[name]) + "\n")
    rows = [{"dataset": name, **row} for name in SETS for row in done[name]["rows"]]
    return rows, [{"dataset": name, **done[name]["facts"]} for name in SETS]


def told_of(name: str, began: float) -> Callable[[str], None]:
    """What prints a word on the progress of a set, with the seconds so far."""
    return lambda said: print(f"{time.perf_counter() - began:5.0f} s  {name}, {said}", flush=True)


def main() -> None:
    """Measure, or only derive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="derive the numbers again from the values of the queries, without a model")
    parser.add_argument("--open", action="store_true", help="open the locked queries too: once, at the end")
    wanted = parser.parse_args()
    if wanted.table:
        result = json.loads(RESULT.read_text(encoding="utf-8"))
        rows, graphs = result["systems"], result["graphs"]
    else:
        rows, graphs = measure(["develop", "locked"] if wanted.open else ["develop"])
    rows, gaps = derived(rows)
    result = {"plan": PRIMARY, "entry": WALK.entry, "primary": primary(gaps), "graphs": graphs, "systems": rows, "differences": gaps}
    RESULT.write_text(lines(result), encoding="utf-8")
    PARTIAL.unlink(missing_ok=True)
    print(table(result))


if __name__ == "__main__":
    main()
