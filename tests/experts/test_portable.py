"""Experts that travel: exported without their graphs, taken in where they fit, and refused or told what is
lacking where not.
"""

from __future__ import annotations

import json

import pytest
from support.expert_server import COOK, COOK_ID, echoing, expert_office, the_cookbook

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.experts.expert import expert_config
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.portable import adapt_expert, expert_to_json
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertModels, ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Node

WHOLE = {
    **COOK,
    "retrieval": {"alpha": 1, "boost_types": ["requires", "enables"]},
    "dimension_filters": {"token_efficiency": {"min": 0.5}},
    "playbook_skills": ["cost-control"],
    "custom_goal_mappings": {"debug": {"boost_types": ["has_limitation"]}},
}


@pytest.fixture
def service():
    return expert_office(expert=WHOLE)


@pytest.fixture
def sent(service):
    """An expert as a file holds it."""
    return json.loads(json.dumps(expert_to_json(service.expert(COOK_ID), service.graphs)))


def other_office(**graphs):
    made = {name: (lambda graph=graph: graph) for name, graph in graphs.items()}
    return ExpertService(open_experts(), GraphFolder(more=made), ExpertModels({"m": echoing}, "m"))


def test_an_expert_comes_back_as_it_was(service, sent):
    found = adapt_expert(sent, service)
    assert found.config == service.expert(COOK_ID).config == expert_config(WHOLE) and found.warnings == ()
    assert sent["graphs"]["cookbook"]["nodes"] == 291 and "Prompt caching" not in json.dumps(sent)


def test_a_graph_of_ours_may_stand_for_one_of_its_own(sent):
    here = other_office(mine=the_cookbook())
    with pytest.raises(UnknownName, match="unknown graph 'cookbook'"):
        adapt_expert(sent, here)
    found = adapt_expert(sent, here, graphs={"cookbook": "mine"})
    assert found.config.graphs == ("mine",)
    assert here.add(found.config).graphs == ("mine",)
    with pytest.raises(UnknownName, match="graph of this expert"):
        adapt_expert(sent, here, graphs={"other": "mine"})


def test_what_is_lacking_here_is_told_and_left_out(sent):
    here = other_office(cookbook=PropertyGraph.of([Node("a", ("tool",), {"name": "A"})], []))
    here.playbooks = {}
    found = adapt_expert(sent, here)
    assert found.config.playbook_skills == ()
    for lacking in ("playbook cost-control", "edges of the type requires", "dimension token_efficiency"):
        assert any(lacking in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "something"}, "no exported expert"),
        ({"schema_version": 2}, "schema version 2"),
        ({"expert": {**COOK, "name": "Another"}}, "hash does not fit"),
        ({"expert": "text", "sha256": None}, "hash does not fit"),
    ],
)
def test_a_file_that_is_none_or_was_changed_is_refused(service, sent, change, said):
    with pytest.raises(BadInput, match=said):
        adapt_expert({**sent, **change}, service)
