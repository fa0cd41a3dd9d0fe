"""Which process of several gets which tests: all of a file together, those of the browser together, and what takes long first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

BROWSER = "tests/browser"  # one JupyterLab and one Chromium for all its files
LONG = (
    BROWSER, "tests/experiments/test_recall.py", "tests/stores/test_size_of_elements.py", "tests/test_receipts.py",
    "tests/stores/test_postgres.py", "tests/pairs/test_join.py", "tests/stores/test_one_write_ahead.py", "tests/stores/test_contract.py",
    "tests/cli/test_bench.py", "tests/stores/test_side_by_side.py", "tests/cli/test_commands.py", "tests/stores/test_sqlite.py",
    "tests/stores/test_same_everywhere.py", "tests/loop/test_bundled_traces.py", "tests/draw/test_plots.py", "tests/stores/test_forks.py",
    "tests/loop/test_adversarial.py", "tests/stores/test_durability.py", "tests/stores/test_cypher_server.py", "tests/loop/test_local.py",
    "tests/embedding/test_embedders.py", "tests/stores/test_sparql_server.py", "tests/stores/test_cypher.py",
    "tests/retrieval/test_words.py", "tests/retrieval/test_follow.py", "tests/test_readme.py", "tests/viz/test_graph_view.py",
    "tests/viz/test_export.py", "tests/experiments/test_analogies.py",
)  # fmt: skip


def group_of(nodeid: str) -> str:
    """The tests that stay together with this one."""
    file = nodeid.partition("::")[0]
    return BROWSER if file.startswith(f"{BROWSER}/") else file


def in_order(nodeids: Sequence[str]) -> list[str]:
    """Tests of groups that take long first, so that no process is left with one at the end while the others have nothing to do."""
    rank = {group: number for number, group in enumerate(LONG)}
    return sorted(nodeids, key=lambda nodeid: rank.get(group_of(nodeid), len(LONG)))


class Together(LoadScopeScheduling):
    """Hands out whole groups, in the order in which the tests were collected."""

    def __init__(self, config: pytest.Config, log: Producer | None = None):
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
