"""The two experts that come with the package: on the curated graph, and on the code and documents of this
package itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kgot_lab.experts.expert import expert_config
from kgot_lab.experts.graph_folder import read_graph_in_worker
from kgot_lab.experts.repository import AlreadyExists, NotFound
from kgot_lab.experts.service import ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.cookbook import cookbook

_FOLDER = Path(__file__).parent / "shipped"
_PACKAGE = Path(__file__).parents[1]


SHIPPED_GRAPHS: Mapping[str, Callable[[], PropertyGraph]] = {
    "cookbook": cookbook,
    "kgot_lab": lambda: read_graph_in_worker(_PACKAGE),
}


def shipped_configs() -> Iterator[tuple[str, dict[str, Any]]]:
    """The shipped experts, each with its id, as JSON has them."""
    for path in sorted(_FOLDER.glob("*.json")):
        yield f"expert_{path.stem}", json.loads(path.read_text(encoding="utf-8"))


def ship_experts(service: ExpertService) -> tuple[str, ...]:
    """Keep the shipped experts where they never were; the ids of those that are new. What somebody deleted
    stays away.
    """
    new = []
    for id, told in shipped_configs():
        try:
            service.expert(id)
        except NotFound:
            try:
                service.tables.add_expert(expert_config(told), id=id)  # its graph is read later
            except AlreadyExists:
                continue
            new.append(id)
    return tuple(new)
