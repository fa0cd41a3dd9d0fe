"""Another embedder on the standard sets, beside the bundled one: the same systems with its vectors, and a
trail learnt anew with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.standard_sets.fitting import fit_scorer
from benchmarks.standard_sets.learning import LearningProgress, develop_parts, learnt_choices
from benchmarks.standard_sets.standard import STANDARD_PLAN, TRAIL
from kgot_lab.benchmark.recall.bench import BenchmarkProgress
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.filling import file_name, fill
from kgot_lab.benchmark.recall.systems import BASELINE, systems
from kgot_lab.embedding.cache import Remembered
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.minilm import MiniLM
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import query_parts
from kgot_lab.evaluation.reports import PLAN, Report, derive
from kgot_lab.evaluation.results import EMBEDDER_HASH
from kgot_lab.evaluation.significance import Estimate, grouped_interval, grouped_p
from kgot_lab.evaluation.source import named_embedder
from kgot_lab.evaluation.tables import Cell, Grid, decimal, format_p_value, signed
from kgot_lab.io.atomic_write import write_whole
from kgot_lab.io.text_files import read_regular_text
from kgot_lab.retrieval.multihop.retriever import trail
from kgot_lab.retrieval.multihop.scorer import Scorer
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document

EMBEDDER_SETS = ("2wiki-1000", "musique-498")
# a trail with the weights of the package
EMBEDDER_SYSTEMS = ("embeddings", BASELINE, "follow, sentences", TRAIL)
ANEW = "trail, learnt anew"
_MEASURE, _LOCKED, _DEVELOP = "recall@5", "locked", "develop"
_DEEP = 5  # hits kept, as many as the measure looks at
_WEIGHTS = "weights "


def learn_anew(folder: Path, embedder: Embedder, names: Sequence[str], progress: LearningProgress) -> Path:
    """Learn a trail with an embedder on develop questions, into a file of the embedder's folder that
    measure_embedder() looks for.

    `names` are parts of develop_parts(), all of them where none is named. Raises UnknownName for another.
    """
    parts = develop_parts()
    known = [part.name for part in parts]
    for name in names:
        if name not in known:
            raise UnknownName("set to learn on", name, known)
    found = learnt_choices(
        [part for part in parts if not names or part.name in names], Remembered(embedder), progress
    )
    system = f"{ANEW} on {' and '.join(names)}" if names else ANEW
    told = {"system": system, "embedder": named_embedder(embedder), "weights": fit_scorer(found).as_json()}
    path = folder / file_name(embedder.name) / f"{file_name(_WEIGHTS + system)}.json"
    write_whole(path, json.dumps(told) + "\n", "the weights")
    return path


def measure_embedder(
    folder: Path,
    embedder: Embedder,
    progress: BenchmarkProgress = lambda done, total, what: None,
    *,
    names: Sequence[str] = EMBEDDER_SETS,
    chosen: Sequence[str] = EMBEDDER_SYSTEMS,
) -> None:
    """Run systems with an embedder on data sets into receipts of a folder of its own, and after them each
    trail that was learnt with it.

    Learnt ones only where `chosen` has "trail". `progress(done, total, what)` counts systems. Raises
    UnknownName for a system; BadInput where weights were learnt with another embedder of that name; and what
    `fill` raises.
    """
    own = folder / file_name(embedder.name)
    STANDARD_PLAN.write_down(own / PLAN)
    weights = (
        dict(_weights(path, embedder) for path in sorted(own.glob(f"{_WEIGHTS.strip()}*.json")))
        if TRAIL in chosen
        else {}
    )
    total, done = len(names) * (len(chosen) + len(weights)), 0
    for name in names:
        dataset, remembered = load_dataset(name), Remembered(embedder)
        remembered.remember([query.text for query in dataset.queries])
        ours = systems(dataset, remembered)
        if unknown := [system for system in chosen if system not in ours]:
            raise UnknownName("system", unknown[0], ours)
        made: dict[str, Callable[[], Stage]] = {system: ours[system] for system in chosen}
        made |= {
            system: partial(_learnt_trail, dataset.documents, remembered, text)
            for system, text in weights.items()
        }
        for system, build in made.items():
            progress(done, total, f"{system} on {name}")
            fill(own, dataset, {system: build}, STANDARD_PLAN, keep=_DEEP)
            done += 1


def _weights(path: Path, embedder: Embedder) -> tuple[str, str]:
    """The name of a system and its weights as a text, which a receipt then counts to its code."""
    told = json.loads(read_regular_text(path))
    if told["embedder"] != named_embedder(embedder):
        raise BadInput(
            f"{path.name} was learnt with {told['embedder'][:60]}, another embedder than this; delete it, or learn it anew"
        )
    return told["system"], json.dumps(told["weights"])


def _learnt_trail(documents: tuple[Document, ...], embedder: Embedder, weights: str) -> Stage:
    return trail(documents, embedder, Scorer.of_json(json.loads(weights)))


# --- the tables
# -------------------------------------------------------------------------------------------------------


def embedder_tables(folder: Path) -> list[Grid]:
    """What each embedder in a folder of receipts reached, beside the bundled one, and by kind of question;
    without a model.

    Raises BadInput where the folder has no receipts of the bundled embedder, or a receipt is broken.
    """
    bundled_one = folder / file_name(MiniLM.name)
    if not (bundled_one / PLAN).exists():
        raise BadInput(
            f"{folder.name} has no receipts of the bundled embedder to compare with: run it with --embedder minilm first"
        )
    others = sorted(inner for inner in folder.iterdir() if (inner / PLAN).exists() and inner != bundled_one)
    found = [
        {report.dataset.name: report for report in derive(inner, load_dataset)}
        for inner in (bundled_one, *others)
    ]
    grids = []
    for name in sorted({name for reports in found for name in reports}):
        reports = [each[name] for each in found if name in each]
        grids.append(_reached_by(reports))
        if len(set(reports[0].dataset.types.values())) > 1:
            grids.append(_kinds_by(reports))
    return grids


def gap_between(one: Report, other: Report, system: str, part: str) -> tuple[Estimate, float]:
    """The mean paired difference in recall@5 of a system in two reports on a data set, with its interval over
    groups, and p.
    """
    groups = one.dataset.groups
    own, theirs = (report.scores[system].per_query(_MEASURE) for report in (one, other))
    asked = [query.id for query in one.dataset.queries if query.id in query_parts(one.dataset)[part]]
    gaps, together = (
        [own[query] - theirs[query] for query in asked],
        [groups.get(query, query) for query in asked],
    )
    return grouped_interval(gaps, together), grouped_p(gaps, together)


def embedder_of(report: Report) -> str:
    """The embedder that the baseline's receipt names, with the first characters of its SHA-256."""
    (run,) = (run for run in report.runs if run.system == report.plan.baseline)
    name, _, digest = run.about[EMBEDDER_HASH].rpartition(" ")
    return f"{name} ({digest[:8]})"


def _reached_by(reports: Sequence[Report]) -> Grid:
    rows = []
    first = reports[0]
    for report in reports:
        for system in _ordered(report):
            cells = [embedder_of(report), system]
            for part in (_LOCKED, _DEVELOP):
                row = report.row(system, _MEASURE, part)
                cells += [decimal(row.mean), f"{decimal(row.low)} to {decimal(row.high)}"]
            gained = ["", "", ""]
            if report is not first and system in first.scores:
                gap, p = gap_between(report, first, system, _LOCKED)
                gained = [signed(gap.mean), f"{signed(gap.low)} to {signed(gap.high)}", format_p_value(p)]
            rows.append(tuple(map(Cell, [*cells, *gained])))
    counted = {part: first.row(BASELINE, _MEASURE, part).n for part in (_LOCKED, _DEVELOP)}
    columns = (
        "embedder",
        "system",
        "locked",
        "95 %",
        "develop",
        "95 %",
        "locked, minus the bundled embedder's",
        "95 %",
        "p",
    )
    told = f"{counted[_LOCKED]} locked and {counted[_DEVELOP]} develop questions; what was learnt has seen the develop ones"
    return Grid(f"{first.dataset.name}: recall@5, {told}", columns, tuple(rows))


def _kinds_by(reports: Sequence[Report]) -> Grid:
    dataset = reports[0].dataset
    locked = query_parts(dataset)[_LOCKED]
    kinds = {
        kind: [id for id in locked if dataset.types[id] == kind]
        for kind in sorted(set(dataset.types.values()))
    }
    rows = []
    for report in reports:
        for system in _ordered(report):
            means = [report.scores[system].only(ids).mean(_MEASURE) for ids in kinds.values()]
            rows.append(tuple(map(Cell, [embedder_of(report), system, *map(decimal, means)])))
    columns = ("embedder", "system", *(f"{kind} ({len(ids)})" for kind, ids in kinds.items()))
    return Grid(f"{dataset.name}: recall@5 by kind of question, locked", columns, tuple(rows))


def _ordered(report: Report) -> list[str]:
    """The systems as they were measured, those that were learnt anew last."""
    return [
        *(system for system in EMBEDDER_SYSTEMS if system in report.scores),
        *sorted(set(report.scores) - set(EMBEDDER_SYSTEMS)),
    ]
