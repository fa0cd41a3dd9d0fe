"""A Dask cluster on this computer for tests, of two workers with one thread each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def local_cluster(*, processes: bool) -> Iterator[Any]:
    """The cluster; its scheduler has an address on loopback either way."""
    distributed = pytest.importorskip("distributed")
    made = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        processes=processes,
        host="127.0.0.1",
        protocol="tcp://",
    )
    with made as cluster:
        yield cluster
