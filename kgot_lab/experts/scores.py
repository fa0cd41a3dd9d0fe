"""What is known of how good an expert is: what was measured on questions with gold, and what came of its
answers since.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kgot_lab.experts.expert import ExpertConfig
from kgot_lab.experts.service import ExpertService

_MEASURED = Path(__file__).parent / "shipped" / "scores"


def expert_scores(service: ExpertService, id: str) -> dict[str, Any]:
    """The scores of an expert: `measured` by a benchmark, or None, and `in_use` over its answers; raises
    NotFound.

    What was measured is told of an expert that is as it was then; somebody who changes it has another.
    """
    measured = _measured(id, service.expert(id).config)
    answers = [
        each
        for each in service.tables.judged(id)
        if not each.about.get("failed") and not each.about.get("stopped")
    ]
    thumbs = [each.thumb for each in answers if each.thumb]
    cited = sum(len(each.about.get("citations", ())) for each in answers)
    false = sum(len(each.about.get("false_citations", ())) for each in answers)
    told = sum(len(each.about.get("kg_nodes_used", ())) for each in answers)
    first = [each.about["first_token_ms"] for each in answers if "first_token_ms" in each.about]
    in_use = {
        "answers": len(answers),
        "thumbs_up": sum(thumb > 0 for thumb in thumbs),
        "thumbs_down": sum(thumb < 0 for thumb in thumbs),
        "citations": cited,
        "false_citations": false,
        "nodes_told": told,
        "first_token_ms_median": statistics.median(first) if first else None,
    }
    return {"measured": measured, "in_use": in_use}


def _measured(id: str, config: ExpertConfig) -> dict[str, Any] | None:
    path = _MEASURED / f"{id}.json"
    if not id.isidentifier() or not path.is_file():
        return None
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return told if told.pop("config") == config.digest else None


def numbers_measured(scores: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of measured scores by a name each, as a marketplace lists them: those of `a.b` within `a`."""
    return dict(_numbers(scores, ""))


def _numbers(scores: Mapping[str, Any], before: str) -> Iterator[tuple[str, float]]:
    for name, value in scores.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{before}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{before}{name}", float(value)
