"""Dimensions of an expert's graphs that the people who talk to it contradict: read off what all of them said."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain

from kgot_lab.errors import require_count
from kgot_lab.experts.learning.contradictions import (
    ContradictionReport,
    contradicted_dimensions,
    stated_dimensions,
)
from kgot_lab.experts.service import ExpertService

# the days that are looked back, where nobody says how many, and at most
DRIFT_DAYS, MOST_DRIFT_DAYS = (90, 3650)
_MOST = 20_000  # messages that are read, the last ones


def drift_of_expert(
    service: ExpertService, id: str, *, days: int = DRIFT_DAYS
) -> dict[str, ContradictionReport]:
    """What is contradicted in each graph of an expert by what people said to it in the last days; raises
    NotFound and BadInput.

    A person is whoever a conversation belongs to, so on a server without tokens all are one, and one is never
    believed alone. The reports hold the words of everybody: whoever shows them to others leaves those out.
    """
    require_count(days, 1, "days")
    known = service.expert(id)
    said = service.tables.spoken(id, service.tables.now() - timedelta(days=min(days, MOST_DRIFT_DAYS)), _MOST)
    reports = {}
    for name in known.graphs:
        graph = service.graphs.graph(name)
        evidence = chain.from_iterable(
            stated_dimensions(graph, text, by=owner, message=id, at=at) for owner, id, text, at in said
        )
        reports[name] = contradicted_dimensions(graph, evidence)
    return reports
