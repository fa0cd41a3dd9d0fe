"""The first fact that a run let go of, and how far it came."""

from __future__ import annotations

import pytest

from benchmarks.competence.gaps import first_gap
from benchmarks.competence.plain_facts import PlainFacts
from benchmarks.competence.simulated import Competence, Simulated
from benchmarks.competence.worlds import chain_world
from kgot_lab.loop.controller import think
from kgot_lab.loop.limits import LOCAL, REFERENCE
from kgot_lab.retrieval.bm25 import bm25
from kgot_lab.tools.search import search
from kgot_lab.types import Document

WORLD = chain_world(4, 2)


@pytest.mark.parametrize(
    ("competence", "limits", "documents", "gap"),
    [
        (Competence(), REFERENCE, WORLD.documents, "not answered from"),
        (Competence(missed=1), REFERENCE, WORLD.documents, "shown and not written"),
        (Competence(), REFERENCE.but(steps=1), WORLD.documents, "not looked up"),
        (Competence(), REFERENCE, [*WORLD.documents[:1], *WORLD.documents[3:]], "looked up and not found"),
        (Competence(), LOCAL.but(tool_tokens=1), WORLD.documents, "found and not shown to the model"),
    ],
    ids=["none", "missed", "one turn", "no page", "no room"],
)
def test_the_first_gap_says_how_far_a_fact_came(competence, limits, documents, gap):
    chain = WORLD.gold.chains[0]
    if gap.startswith("found"):  # what else the page says is as near to the question and stands before it
        documents = [
            Document(
                "d", f"{chain.question.removesuffix('?')}. {chain.steps[0].sentence}", chain.steps[0].title
            )
        ]
    events = think(
        chain.question,
        Simulated(WORLD.gold, competence),
        PlainFacts(),
        [search(documents, bm25(documents), k=2)],
        limits,
    )
    assert first_gap(events, chain) == gap
