"""The two experts that come with the package: on the curated graph, and on the code and documents of this package itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from kgot_lab.experts.keeping import AlreadyThere, NotThere
from kgot_lab.experts.office import ExpertOffice
from kgot_lab.extraction.folder import FileProgress, graph_of_folder
from kgot_lab.graph import PropertyGraph
from kgot_lab.methods.cookbook import cookbook

_FOLDER = Path(__file__).parent / "shipped"
_PACKAGE = Path(__file__).parents[1]


def shipped_graphs(progress: FileProgress | None = None) -> dict[str, Callable[[], PropertyGraph]]:
    """The graphs of the shipped experts by name, each made when it is first asked for; `progress` is told of the files that are read."""
    return {"cookbook": cookbook, "kgot_lab": lambda: graph_of_folder(_PACKAGE, progress=progress).graph}


def ship_experts(office: ExpertOffice) -> tuple[str, ...]:
    """Keep the shipped experts where they never were; the ids of those that are new. What somebody deleted stays away."""
    new = []
    for path in sorted(_FOLDER.glob("*.json")):
        id = f"expert_{path.stem}"
        try:
            office.expert(id)
        except NotThere:
            try:
                office.create(json.loads(path.read_text(encoding="utf-8")), id=id)
            except AlreadyThere:
                continue
            new.append(id)
    return tuple(new)
