"""The kinds of store that a test which asks for one is run with."""

from __future__ import annotations

import pytest
from support.store_kinds import KINDS


@pytest.fixture(params=KINDS, ids=str)
def kind(request):
    return request.param


@pytest.fixture
def home(kind, tmp_path, request):
    """Opens the same home each time."""
    return kind.open(tmp_path, request)
