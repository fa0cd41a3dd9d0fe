"""Talk with an expert in one line: in memory, without a server or a file."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.embedders import query_embedder
from kgot_lab.errors import BadInput, NotInstalled, UnknownName
from kgot_lab.experts.expert import Persona, merge_patch
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import SHIPPED_GRAPHS, ExpertModels, ExpertService, shipped_configs
from kgot_lab.experts.session import ExpertTalk
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import as_graph
from kgot_lab.kgos.query.graph_loading import load_graph
from kgot_lab.llm import connect
from kgot_lab.types import LLM, Json

_GRAPH_NAME = "graph"  # how a graph that was given is called in citations
_DEFAULT_INSTRUCTIONS = "You answer questions about the knowledge graph that you are shown, and name what limits what you recommend."


@check_arguments
def expert(
    knows: str | Path | PropertyGraph | Iterable[object],
    *,
    model: str | LLM = "local",
    persona: str | Mapping[str, Json] | Persona | None = None,
    settings: Mapping[str, Json] | None = None,
) -> ExpertTalk:
    """Start a conversation with an expert on a graph.

    For example, `talk = lab.expert("cookbook")`, then `talk.ask("…")`, and `lab.show(talk)` to ask in a
    notebook.

    `knows` is the name of a shipped expert ("cookbook", or "code" for this package's own), or a graph: a
    PropertyGraph, a NetworkX graph, triples, edges, a file, or a folder of code and texts. `model` is a
    model, or what `connect` takes. `persona` is its style of speech: instructions in words, or the fields of
    a Persona that differ. `settings` are other fields of `kgot_lab.experts.expert.ExpertConfig`, such as
    {"retrieval": {"limit": 5}}. Nothing is stored on disk. Raises UnknownName, BadInput, and what `connect`
    raises.
    """
    shipped = {id.removeprefix("expert_"): config for id, config in shipped_configs()}
    if isinstance(knows, str) and knows in shipped:
        config, graphs = shipped[knows], SHIPPED_GRAPHS
    else:
        if isinstance(knows, str) and not _path_exists(knows):
            raise UnknownName("shipped expert or place of a graph", knows, shipped)
        graph = load_graph(str(knows)) if isinstance(knows, str | Path) else as_graph(knows)
        if not len(graph):
            raise BadInput("the graph is empty: there is nothing that an expert could know")
        persona_config = {"name": "Expert", "instructions": _DEFAULT_INSTRUCTIONS}
        config = {"name": "Expert", "kg_db_id": _GRAPH_NAME, "persona": persona_config}
        graphs = {_GRAPH_NAME: lambda: graph}
    llm = connect(model)
    models, folder = ExpertModels({llm.name: lambda: llm}, llm.name), GraphFolder(None, graphs)
    service = ExpertService(open_experts(), folder, models, embedder=_embedder())
    weakref.finalize(service.tables, service.tables.storage.close)  # optional, since all of it is in memory
    config = merge_patch(merge_patch(config, {"persona": _persona(persona)}), settings or {})
    return ExpertTalk(service, service.create(config).id)


def _path_exists(path: str) -> bool:
    try:
        return Path(path).expanduser().exists()
    except (OSError, RuntimeError):  # name too long, or the home of an unknown user
        return False


def _persona(persona: str | Mapping[str, Json] | Persona | None) -> dict[str, Any]:
    """Return the fields of a persona given as text, mapping or Persona."""
    if isinstance(persona, Persona):
        return persona.model_dump(mode="json", exclude_unset=True)
    if isinstance(persona, str):
        return {"instructions": persona}
    if persona is None or isinstance(persona, Mapping):
        return dict(persona or {})
    raise BadInput("a persona is its instructions, or a mapping with name, instructions, style, greeting")


def _embedder() -> Embedder | None:
    try:
        return query_embedder()
    except NotInstalled as error:
        warnings.warn(f"no dense retrieval: {error}", stacklevel=3)
        return None
