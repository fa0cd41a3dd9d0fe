"""The experts of this computer, as the commands open them: where they are kept, with their graphs and their
models.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.cli import terminal
from kgot_lab.errors import BadInput, NotInstalled

if TYPE_CHECKING:
    from kgot_lab.experts.learning.reviewing import ReviewQueue
    from kgot_lab.experts.service import ExpertService


def place_of_store(store: str | None) -> str:
    """Where experts are kept: where somebody says, else in a file of the user's."""
    from platformdirs import user_data_path

    if store is not None:
        return store
    folder = user_data_path("kgot_lab", appauthor=False)
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / "experts.db")


def place_of_proposals(store: str | None) -> str:
    """Where proposals are kept: on the same server, in a schema of their own, or in a file beside the
    experts', whose name is its own.
    """
    place = place_of_store(store)
    if "://" in place or place == ":memory:":
        return place
    return place.removesuffix(".db") + ".proposals.db" if place.endswith(".db") else f"{place}.proposals"


def open_service(
    graphs: Path | None,
    store: str | None,
    model: str = "local",
    models: Path | None = None,
    *,
    searching: bool = True,
) -> ExpertService:
    """The service of a server: its graphs, its tables, its models, and the experts that come with the package.

    Where nobody is `searching`, nothing is opened that only a search by meaning needs.
    """
    from kgot_lab.embedding.query_embedder import query_embedder
    from kgot_lab.experts.graph_folder import GraphFolder
    from kgot_lab.experts.repository import open_experts
    from kgot_lab.experts.service import SHIPPED_GRAPHS, ExpertModels, ExpertService, ship_experts
    from kgot_lab.llm import check_spec, connect
    from kgot_lab.llm.capabilities import without_quotes
    from kgot_lab.llm.models import load_models

    if graphs is not None and not graphs.is_dir():
        raise BadInput(f"{graphs} is no folder: name the folder that the graphs lie in")
    named = load_models(models) if models else {}
    check_spec(model, named) if model not in named else None

    def say(told: str) -> None:
        terminal.say(without_quotes(told))  # what is printed is the log of the server

    makers = {each: (lambda each=each: connect(each, models=named, say=say)) for each in (model, *named)}
    try:
        embedder = query_embedder() if searching else None
    except NotInstalled as error:
        terminal.say(f"note: no search by meaning: {error}")
        embedder = None
    folder, tables = GraphFolder(graphs, SHIPPED_GRAPHS), open_experts(place_of_store(store))
    service = ExpertService(tables, folder, ExpertModels(makers, model), embedder=embedder)
    ship_experts(service)
    return service


def open_review_queue(
    graphs: Path | None, store: str | None, models: Path | None = None, *, searching: bool = False
) -> ReviewQueue:
    """The service of a server with what was accepted for its graphs, as its doors have it, for a command that
    answers no question.
    """
    from kgot_lab.experts.learning.ledger import open_proposals
    from kgot_lab.experts.learning.reviewing import ReviewQueue

    service = open_service(graphs, store, models=models, searching=searching)
    return ReviewQueue(service, open_proposals(place_of_proposals(store)))
