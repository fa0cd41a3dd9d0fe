"""The plan of the comparison, written before the first question and fixed for systems that have answered."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from kgot_lab.benchmark.comparison.systems import ANSWER_SYSTEMS, AnswerSystem, prompt_digests
from kgot_lab.benchmark.questions.batch import RESULTS_FILE
from kgot_lab.benchmark.questions.plan import (
    PLAN_FILE,
    creation_note,
    format_differences,
    hash_ids,
    plan_differences,
    read_plan,
    refuse_other_files,
    write_plan_file,
)
from kgot_lab.benchmark.questions.question import QuestionSet
from kgot_lab.benchmark.questions.sets import BUNDLED_SETS, HELD_OUT
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.significance import ROUNDS
from kgot_lab.io.files import write_atomically
from kgot_lab.loop.trace import model_metadata
from kgot_lab.types import LLM, Json

# Pairs: fixed before the run, so that no choice can follow the results.

ALL_SETS = "all sets"  # their questions together
SYSTEM_PAIRS: tuple[tuple[str, str], ...] = (
    ("paths", "rag"), ("paths", "rag-few"), ("paths", "follow-few"), ("paths", "local"), ("paths-fused", "paths"),
    ("follow-few", "rag"), ("rag-few", "rag"), ("long-context", "rag-few"), ("local", "rag"), ("closed-book", "rag"), ("gold", "paths"),
)  # fmt: skip
ANSWER_MEASURES: Mapping[str, str] = {  # what is measured of each answer, and how
    "em": "exact match after normalisation, with the right answer or an alias of it",
    "f1": "harmonic mean of precision and recall of the answer's words, the best over the aliases",
    "prompt tokens": "all that the model read, in all calls; the median",
    "evidence tokens": "of the facts that the answer was read from, about four letters each; the median",
    "seconds": "wall time of a question; the median",
    "calls": "of the model; the mean",
    "resting": "share of the answers but yes and no that stand in the facts as whole words",
    "destroyed": "of the questions that the model alone answers right (em), the share that the system does not",
}


# Questions: drawn by seed before the first run, none of them used for tuning.

DRAW_SEED = 20261123


@dataclass(frozen=True)
class Sample:
    """The parts of a set that are asked, in stored order or shuffled by a seed, and where to tune instead."""

    parts: tuple[str, ...]
    tuned_on: str  # the set whose dev split is for tuning
    seed: int | None = None

    def select(self, questions: QuestionSet) -> QuestionSet:
        """Return the questions in the order in which they are asked: that of the set, or shuffled by the
        seed.
        """
        ids = [id for part in self.parts for id in (questions.parts or {})[part]]
        if self.seed is not None:
            random.Random(self.seed).shuffle(ids)
        return questions.only(ids)


SAMPLES: Mapping[str, Sample] = {
    "hotpotqa": Sample((HELD_OUT, "test"), "hotpotqa", DRAW_SEED),
    "2wiki": Sample((HELD_OUT,), "2wiki"),
    "musique-498": Sample((HELD_OUT,), "musique"),
}


def drawn_samples() -> dict[str, QuestionSet]:
    """Return the sampled questions of each set: 70 of HotpotQA, 150 of 2WikiMultiHopQA, 150 of MuSiQue."""
    return {name: sample.select(BUNDLED_SETS[name]()) for name, sample in SAMPLES.items()}


def dev_samples() -> dict[str, QuestionSet]:
    """Return the dev split of each set.

    It has 30 questions of HotpotQA, 61 of 2WikiMultiHopQA, and 60 of MuSiQue's training part.
    """
    found = {}
    for sample in SAMPLES.values():
        whole = BUNDLED_SETS[sample.tuned_on]()
        found[sample.tuned_on] = whole.only((whole.parts or {})["dev"])
    return found


_KIND = "does the graph pay"
_REQUIRED_KEYS = {"sets", "systems", "pairs", "aims", "chance"}  # to derive results


@dataclass(frozen=True)
class Design:
    """The design of a comparison: questions, systems, pairs and goals, with rounds and seed of the tests."""

    samples: Mapping[str, QuestionSet] = field(default_factory=drawn_samples)
    systems: Mapping[str, AnswerSystem] = field(default_factory=lambda: ANSWER_SYSTEMS)
    pairs: Sequence[tuple[str, str]] = SYSTEM_PAIRS
    aims: Sequence[
        Any
    ] = ()  # goals of an experiment, as data classes: what each compares, and on which questions
    rounds: int = ROUNDS
    seed: int = DRAW_SEED
    dev: bool = False  # whether the questions are the dev split

    def plan(self, llm: LLM | None) -> dict[str, Json]:
        """Return the plan of this design as plain values.

        Without a model, it holds what is the same for every model.
        """
        sets = {
            name: {
                "sha256": chosen.sha256, "questions": len(chosen.questions), "questions_sha256": hash_ids(chosen),
                "tuned on": self._tuned_on(name),
            }
            for name, chosen in self.samples.items()
        }  # fmt: skip
        digests = prompt_digests()
        content = {
            "plan": 1, "kind": _KIND, "sets": sets, "sample seed": DRAW_SEED,
            "systems": {name: system.as_json() | {"prompts": digests[system.prompt_source]} for name, system in self.systems.items()},
            **({} if llm is None else {"model": {"name": llm.name, **model_metadata(llm)}}), "measures": dict(ANSWER_MEASURES),
            "pairs": [list(pair) for pair in self.pairs], "aims": list(map(asdict, self.aims)),
            "chance": {
                "p": "paired randomisation, the signs of a group flipped together",
                "interval": "95 %, BCa bootstrap, a group drawn together",
                "family": "Holm over what aims of a gain name, and apart from it over all other pairs and sets",
                "rounds": self.rounds, "seed": self.seed,
            },
            "made": creation_note(),
        }  # fmt: skip
        return dict(json.loads(json.dumps(content)))

    def _tuned_on(self, name: str) -> str:
        """Return the set and part for tuning in place of a set's questions, or "itself" if these are for
        tuning.
        """
        # plans on file say "hotpotqa develop"
        return "itself" if self.dev or name not in SAMPLES else f"{SAMPLES[name].tuned_on} develop"


def write_comparison_plan(plan: Mapping[str, Json], folder: Path) -> bool:
    """Write a plan into a folder, or check that the folder holds the same one.

    Returns True if it was there. A system that has not answered any question in the folder may still change:
    the plan is then rewritten with a note. Raises BadInput naming the differences.
    """
    if (folder / PLAN_FILE).exists():
        there = load_comparison_plan(folder)
        open_yet = _unanswered_systems(there, plan, folder)
        changed = sorted(name for name in open_yet if there["systems"].get(name) != plan["systems"].get(name))
        before, after = (_without_systems(each, open_yet) for each in (there, plan))
        if changed and not plan_differences(before, after):
            amendment = {"date": str(date.today()), "before their first answer": changed}
            amended = [*there.get("amended", []), amendment]
            write_plan_file({**plan, "made": there["made"], "amended": amended}, folder)
            return True
        _require_same_plan(there, plan, folder)
        return True
    refuse_other_files(folder)
    write_plan_file(plan, folder)
    # results are small enough for a repository, traces are not
    write_atomically(folder / ".gitignore", "traces/\n.lock*\n", "what git ignores")
    return False


def _unanswered_systems(there: Mapping[str, Json], plan: Mapping[str, Json], folder: Path) -> set[str]:
    """Return the systems of two plans that have not answered any question in a folder."""
    names = {*there["systems"], *plan["systems"]}
    return {name for name in names if not any(folder.glob(f"*/{name}/{RESULTS_FILE}"))}


def _require_same_plan(there: Mapping[str, Json], plan: Mapping[str, Json], folder: Path) -> None:
    """Raise BadInput unless two plans are the same, naming the differences, or the splits if those differ."""
    stored = {name: value for name, value in there.items() if name != "amended"}
    if differences := plan_differences(stored, plan):
        held, wanted = _is_tuning(there), _is_tuning(plan)
        if held != wanted:
            kinds = {True: "the comparison on the dev split", False: "the comparison on the test questions"}
            needs = f"{kinds[wanted]} needs a folder of its own: name it with --folder DIR"
            raise BadInput(f"{folder}: this folder holds {kinds[held]}; {needs}")
        said = f"{folder} holds answers to another plan: {format_differences(differences)}. A plan is not changed afterwards"
        raise BadInput(f"{said}: name another folder with --folder DIR")


def _is_tuning(plan: Mapping[str, Json]) -> bool:
    """Return whether the questions of a plan are those of the dev split."""
    return bool(plan["sets"]) and all(told.get("tuned on") == "itself" for told in plan["sets"].values())


def _without_systems(plan: Mapping[str, Json], systems: Collection[str]) -> dict[str, Json]:
    """Return a plan without some of its systems and without its record of changes."""
    kept = {name: value for name, value in plan["systems"].items() if name not in systems}
    return {name: value for name, value in plan.items() if name != "amended"} | {"systems": kept}


def load_comparison_plan(folder: Path) -> dict[str, Any]:
    """Read the plan of a folder as plain values. Raises BadInput if there is none."""
    return read_plan(
        folder, "a comparison", lambda plan: plan.get("kind") == _KIND and plan.keys() >= _REQUIRED_KEYS
    )
