"""A process is killed while it writes: what it was told was done is there, and nothing is half done."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("durability", Path(__file__).parent.parent / "benchmarks" / "durability.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


durability = _load()
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")


@pytest.mark.parametrize("kind", ["in_memory", "sqlite", "postgres"])
def test_a_killed_writer_loses_nothing_that_was_acknowledged(kind, tmp_path, request):
    where = (
        {"url": request.getfixturevalue("postgres_url"), "namespace": "killed"} if kind == "postgres" else {"path": str(tmp_path / "graph")}
    )
    outcome = durability.measure(kind, where, kills=3)
    assert outcome.sound and outcome.acknowledged and outcome.inside, outcome
