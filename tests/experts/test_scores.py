"""What a card tells of an expert: what was measured of it as it is, and nothing of one that somebody changed
since.
"""

from __future__ import annotations

import json

import pytest
from support.expert_server import COOK_ID, expert_office

from kgot_lab.experts import portable
from kgot_lab.experts.portable import expert_scores


@pytest.fixture
def service(tmp_path, monkeypatch):
    monkeypatch.setattr(portable, "_SCORES_FOLDER", tmp_path)
    return expert_office()


def test_what_was_measured_is_told_of_the_expert_as_it_was_then(service, tmp_path):
    assert expert_scores(service, COOK_ID)["measured"] is None
    told = {"model": "local", "citation precision": {"mean": 0.5, "questions": 60}}
    (tmp_path / f"{COOK_ID}.json").write_text(
        json.dumps({"config": service.expert(COOK_ID).config.digest, **told})
    )
    assert expert_scores(service, COOK_ID)["measured"] == told
    service.update(COOK_ID, {"persona": {"instructions": "Be brief."}})
    assert expert_scores(service, COOK_ID)["measured"] is None
