"""The invented month hangs together: its gold names only what is there, keeps to the vocabulary, and says
what the items say.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.schemas.check import find_faults
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT_WITH_COMPANIES
from kgot_lab.types import Edge
from notebooks.invented_month.month import INVENTED_MONTH, load_month

MONTH = load_month()
ITEMS = {item.id: item for item in MONTH.items}
USERS = {row["user"] for row in MONTH.users}


def test_gold_briefings_and_silences_are_of_users_and_items_that_there_are_and_never_of_the_same_call():
    keys = Counter((briefing.user, briefing.item, briefing.action) for briefing in MONTH.briefings)
    assert max(keys.values()) == 1
    for briefing in (*MONTH.briefings, *MONTH.silences):
        assert briefing.user in USERS and briefing.item in ITEMS
    assert not {key[:2] for key in keys} & {(silence.user, silence.item) for silence in MONTH.silences}
    assert all(briefing.since < briefing.by and briefing.paths for briefing in MONTH.briefings)


@pytest.mark.parametrize("item", MONTH.items, ids=lambda item: item.id)
def test_what_gold_says_of_an_item_fits_the_vocabulary_and_stands_in_its_text(item):
    facts = MONTH.facts[item.id]
    nodes = {ref: facts.node(ref) for ref in facts.things}
    edges = [Edge(nodes[e.source].id, e.type, nodes[e.target].id, e.properties) for e in facts.edges]
    assert find_faults(INVESTMENT_WITH_COMPANIES, nodes.values(), edges) == ()
    calls = [facts.things[ref] for ref in facts.said if facts.things[ref].get("type") == "signal"]
    assert all(f"{call['strength']:g}" in item.text for call in calls), (
        "a confidence is one that the item states"
    )
    assert len({call["action"] for call in calls}) == len(calls), "an item and an action are one call"


def test_gold_that_names_what_nobody_said_is_refused(tmp_path):
    for path in bundled_path(INVENTED_MONTH).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    rows = (tmp_path / "gold_facts.jsonl").read_text().splitlines()
    first = json.loads(rows[0])
    first["edges"].append(["n01/event", "affects", "Company:Nobody"])
    (tmp_path / "gold_facts.jsonl").write_text("\n".join([json.dumps(first), *rows[1:]]))
    with pytest.raises(BadInput, match="gold of n01 names Company:Nobody"):
        load_month(tmp_path)
