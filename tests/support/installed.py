"""Skip a file of tests where what it needs is not installed, without loading that in each process that collects it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def needs(*modules: str) -> None:
    """Skip the file that calls this unless all modules are installed; `pytest.importorskip` would load them."""
    if missing := [module for module in modules if find_spec(module) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}", allow_module_level=True)
