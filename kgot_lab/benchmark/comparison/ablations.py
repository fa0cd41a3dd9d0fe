"""What each part of the modes `paths` and `local` gives: the same mode with one thing changed, on the first
questions of each set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kgot_lab.benchmark.comparison.systems import ANSWER_SYSTEMS, AnswerSystem
from kgot_lab.types import Json

_QUESTIONS = 20  # of each set
_FEW = 7  # of each set, for what takes minutes a question
_ONE_READ = {"steps": 1, "hops": False, "comparisons": False}


def _paths(**changes: Json) -> AnswerSystem:
    whole = ANSWER_SYSTEMS["paths"]
    return replace(whole, questions=_QUESTIONS, changes={**whole.changes, **changes})


def _local(**changes: Json) -> AnswerSystem:
    return replace(ANSWER_SYSTEMS["local"], questions=_FEW, changes=changes)


ABLATIONS: Mapping[str, AnswerSystem] = {
    "paths": _paths(),
    "one-path": _paths(**_ONE_READ, paths=1, wide_tokens=0),
    "one-path-without-examples": _paths(**_ONE_READ, paths=1, wide_tokens=0, examples=False),
    "as-many-sentences": _paths(**_ONE_READ, paths=0, wide_tokens=140),
    "twice-as-many-sentences": _paths(**_ONE_READ, paths=0, wide_tokens=280),
    "four-times-as-many-sentences": _paths(**_ONE_READ, paths=0, wide_tokens=560),
    "no-hops": _paths(hops=False),
    "no-comparisons": _paths(comparisons=False),
    "no-wide-read": _paths(wide_tokens=0),
    "passages-for-sentences": _paths(passages=5),
    "no-second-look-up": _paths(steps=1),
    "2-paths": _paths(paths=2),
    "3-paths": _paths(paths=3),
    "longer-paths": _paths(path_tokens=240, wide_tokens=480),
    "sure-at-30": _paths(sure=0.3),
    "sure-at-90": _paths(sure=0.9),
    "links-by-titles": _paths(links=["titles"]),
    "links-by-names": _paths(links=["names"]),
    "links-by-vectors": _paths(links=["vectors"]),
    "all-links": _paths(links=["titles", "names", "vectors"]),
    "no-links": _paths(links=[]),
    "local": _local(),
    "local-1-ballot": _local(votes=1, unpolled=0),
    "local-3-ballots": _local(votes=3, unpolled=0),
    "local-5-ballots": _local(votes=5, unpolled=0),
    "local-no-repairs": _local(repairs=0),
    "local-3-repairs": _local(repairs=3),
}
ABLATION_PAIRS: tuple[tuple[str, str], ...] = (
    ("one-path", "as-many-sentences"),
    ("one-path", "twice-as-many-sentences"),
    ("one-path", "four-times-as-many-sentences"),
    ("one-path", "one-path-without-examples"),
    *(("paths", name) for name in ABLATIONS if name != "paths" and not name.startswith(("local", "as-many", "twice", "four"))),
    *(("local", name) for name in ABLATIONS if name.startswith("local-")),
)  # fmt: skip
