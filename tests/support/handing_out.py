"""Which process of several gets which tests: all of a file together, those of the browser in three shards,
and what takes long first.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# each with its own JupyterLab
BROWSER = ("tests/browser notebooks", "tests/browser a-g", "tests/browser h-z")
LONG = (  # by seconds of a processor
    *BROWSER, "tests/experts/http/test_pages.py", "tests/cli/test_commands.py", "tests/cli/test_questions.py", "tests/test_results.py",
    "tests/stores/test_size_of_elements.py", "tests/experts/http/test_real_servers.py", "tests/faults/test_files.py",
    "tests/cli/test_ending.py", "tests/experts/http/test_fuzzed.py", "tests/stores/test_side_by_side.py", "tests/test_notebooks.py",
    "tests/cli/test_bench.py", "tests/loop/test_bundled_traces.py", "tests/stores/test_contract.py", "tests/test_benchmarks.py",
    "tests/test_readme.py", "tests/viz/test_graph_view.py", "tests/stores/test_one_write_ahead.py", "tests/stores/test_postgres.py",
    "tests/stores/test_paths_read.py", "tests/cli/test_whole_loop.py",
)  # fmt: skip


def group_of(nodeid: str) -> str:
    """The tests that stay together with this one: its file, or its shard of those in the browser."""
    file = nodeid.partition("::")[0]
    if not file.startswith("tests/browser/"):
        return file
    if file.endswith("/test_notebooks.py"):
        return BROWSER[0]
    return BROWSER[1 + (file > "tests/browser/test_h")]


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
