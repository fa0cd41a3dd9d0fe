"""The comparison as it was planned, and its results: the test chats are evaluated by one plan, once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.beam.chats import ABSTENTION, LongChat
from benchmarks.beam.systems import CHAT_CONTROLS, OF_USER, TURN_MEMORY, chat_systems, memory_ablations
from benchmarks.beam.turn_memory import TurnRules
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.results import circumstances, save_results
from kgot_lab.evaluation.runs import Run, latency, run
from kgot_lab.io.files import write_atomically
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Json

OPEN_CHATS, TEST_CHATS = "open", "test"
CHAT_PARTS = {OPEN_CHATS: "open", TEST_CHATS: "locked"}  # and what plan and results call them
BEST_CONTROL = "convex, user turns"  # by recall@5 over the questions of the open chats
# where the memory is to be above the best control
AIMED_AT = ("knowledge_update", "contradiction_resolution")
PLAN_OF_CHATS, EVIDENCE_FILE = "plan.json", "evidence.json"
_ROOT = Path(__file__).parents[2]
_KEPT = 10  # hits of a question, as deep as is measured
_CODE = (
    "benchmarks/beam/chats.py", "benchmarks/beam/remarks.py", "benchmarks/beam/turn_memory.py", "benchmarks/beam/systems.py",
    "kgot_lab/retrieval/lexical.py", "kgot_lab/retrieval/fusion.py", "kgot_lab/retrieval/dense.py", "kgot_lab/retrieval/stage.py",
    "kgot_lab/text/words.py", "kgot_lab/text/words.py",
)  # fmt: skip

ChatProgress = Callable[[int, int, str], object]  # done, total, what is next


def plan_of_chats(data: str, embedder: Embedder) -> dict[str, Json]:
    """What is compared and how, as plain values, with digests of the data, the embedder and the code that
    ranks.
    """
    code = hashlib.sha256(b"\0".join((_ROOT / name).read_bytes() for name in _CODE)).hexdigest()
    return {
        "kind": "turns of long chats", "data": data, "embedder": f"{embedder.name} {embedder.digest}", "code": code,
        "systems": system_names(), "rules": asdict(TurnRules()), "best control": BEST_CONTROL, "aimed at": list(AIMED_AT),
        "measures": ["recall@5", "recall@10"], "primary": "recall@5", "part that decides": CHAT_PARTS[TEST_CHATS],
    }  # fmt: skip


def system_names() -> list[str]:
    """The systems in the order of the tables: all turns, user turns, the memory, the memory with less."""
    return [*CHAT_CONTROLS, *(f"{name}{OF_USER}" for name in CHAT_CONTROLS), TURN_MEMORY, *memory_ablations()]


def measure_chats(
    folder: Path,
    chats: Sequence[LongChat],
    embedder: Embedder,
    plan: Mapping[str, Json],
    *,
    held_out: bool,
    progress: ChatProgress,
) -> None:
    """Rank the turns for every question of the open chats, or of the test ones, into results in a folder.

    The open chats may be measured as often as one likes until the test ones were evaluated; those only by one
    plan, whose results stay. Raises BadInput where the test chats were evaluated by another plan, or there
    are none.
    """
    opened = any((folder / CHAT_PARTS[TEST_CHATS]).glob("*.jsonl.gz"))
    if opened:
        check_same_plan(folder, plan)
        if held_out:
            return
    chosen = [chat for chat in chats if chat.held_out == held_out]
    if not chosen:
        raise BadInput(f"there are no {TEST_CHATS if held_out else OPEN_CHATS} chats in the data")
    write_atomically(folder / PLAN_OF_CHATS, json.dumps(plan, indent=1) + "\n", "the plan")
    runs = _runs(chosen, embedder, progress)
    for name, made in runs.items():
        save_results(made, chat_results(folder, TEST_CHATS if held_out else OPEN_CHATS, name), _KEPT)
    _write_evidence(folder, chosen)


def check_same_plan(folder: Path, plan: Mapping[str, Json]) -> None:
    """Raise BadInput where the plan of a folder, whose test chats were evaluated, is another one."""
    there = json.loads((folder / PLAN_OF_CHATS).read_text(encoding="utf-8"))
    if other := sorted(name for name in {*there, *plan} if there.get(name) != plan.get(name)):
        said = f"the test chats of {folder} were evaluated by another plan ({', '.join(other)} differ)"
        raise BadInput(
            f"{said}. They are evaluated once: what is changed now needs other chats and another folder"
        )


def chat_results(folder: Path, part: str, system: str) -> Path:
    """Where the result of a system on a part of the chats stands."""
    return folder / CHAT_PARTS[part] / f"{'-'.join(system.replace(',', '').split())}.jsonl.gz"


def _runs(chats: Sequence[LongChat], embedder: Embedder, progress: ChatProgress) -> dict[str, Run]:
    """A run of each system over the questions of all chats, each asked of its own chat."""
    parts: dict[str, list[Run]] = {name: [] for name in system_names()}
    for done, chat in enumerate(chats):
        progress(done, len(chats), chat.id)
        stages = chat_systems(chat, embedder)
        for name, some in parts.items():
            some.append(_asked_of(chat, stages[name]))
    progress(len(chats), len(chats), "the results")
    return {name: _joined(name, some) for name, some in parts.items()}


def _asked_of(chat: LongChat, stage: Stage) -> Run:
    return run(stage, [question.query for question in chat.questions], keep=_KEPT)


def _joined(name: str, runs: Iterable[Run]) -> Run:
    some = list(runs)
    hits = {query: found for each in some for query, found in each.hits.items()}
    seconds = {query: took for each in some for query, took in each.seconds.items()}
    return Run(
        name,
        some[0].description,
        "beam-100k",
        _KEPT,
        hits,
        latency(list(seconds.values())),
        seconds,
        circumstances(),
    )


def _write_evidence(folder: Path, chats: Sequence[LongChat]) -> None:
    """Write the ability of each question and the ids of its evidence beside the results, so that they are
    scored without the chats.
    """
    path = folder / EVIDENCE_FILE
    told: dict[str, Json] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for question in (
        question
        for chat in chats
        for question in chat.questions
        if question.evidence or question.ability == ABSTENTION
    ):
        told[question.id] = {"ability": question.ability, "evidence": sorted(question.evidence)}
    lines = ",\n".join(f"{json.dumps(id)}: {json.dumps(told[id])}" for id in sorted(told))
    write_atomically(path, f"{{\n{lines}\n}}\n", "the evidence")
