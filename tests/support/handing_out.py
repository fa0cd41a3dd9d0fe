"""Which process of several gets which tests: all of a file together, those of the browser together, and what
takes long first.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

BROWSER = "tests/browser"  # one JupyterLab and one Chromium for all its files
LONG = (
    BROWSER, "tests/experts/http/test_fuzzed.py", "tests/stores/test_size_of_elements.py", "tests/cli/test_commands.py",
    "tests/stores/test_one_write_ahead.py", "tests/stores/test_contract.py", "tests/benchmark/test_bench.py", "tests/test_receipts.py",
    "tests/stores/test_postgres.py", "tests/cli/test_questions.py", "tests/cli/test_bench.py", "tests/benchmark/test_recall.py",
    "tests/viz/test_graph_view.py", "tests/experts/http/test_pages.py", "tests/benchmark/test_sharing.py",
    "tests/cli/test_whole_loop.py", "tests/experiments/competence/test_along_paths.py", "tests/stores/test_side_by_side.py",
    "tests/evaluation/test_runs.py", "tests/cli/test_ending.py", "tests/fire/test_servers.py", "tests/cli/test_memory.py",
    "tests/domains/npc/test_visibility.py", "tests/cli/test_going_on_twice.py", "tests/loop/test_bundled_traces.py",
    "tests/experiments/test_standard.py", "tests/cli/test_secrets.py", "tests/domains/investment/monitor/test_killed.py",
    "tests/loop/test_supports_kept.py", "tests/similarity/test_join.py", "tests/stores/test_cypher.py", "tests/loop/test_along.py",
    "tests/documents/test_apart.py", "tests/benchmark/test_comparison.py", "tests/loop/test_along_facts.py",
    "tests/experts/http/test_tenants.py", "tests/fire/test_statements.py", "tests/viz/test_plots.py",
    "tests/domains/npc/layers/test_layer_visibility.py", "tests/viz/test_export.py", "tests/kgos/schemas/test_shacl.py",
    "tests/stores/test_sqlite.py", "tests/test_readme.py", "tests/stores/test_cypher_server.py",
)  # fmt: skip


def group_of(nodeid: str) -> str:
    """The tests that stay together with this one."""
    file = nodeid.partition("::")[0]
    return BROWSER if file.startswith(f"{BROWSER}/") else file


def in_order(nodeids: Sequence[str]) -> list[str]:
    """Tests of groups that take long first, so that no process is left with one at the end while the others
    have nothing to do.
    """
    rank = {group: number for number, group in enumerate(LONG)}
    return sorted(nodeids, key=lambda nodeid: rank.get(group_of(nodeid), len(LONG)))


class Together(LoadScopeScheduling):
    """Hands out whole groups, in the order in which the tests were collected."""

    def __init__(self, config: pytest.Config, log: Producer | None = None):
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
