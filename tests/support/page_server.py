"""Experts on a real server on loopback, whose model says what the last question calls for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.http.auth import GuardRules
from kgot_lab.experts.http.connections import LimitedServer, listening_socket
from kgot_lab.experts.http.server import expert_app
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertModels, ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Edge, Node, Prompt
from support.waiting import until

MARKUP = "<img src=x onerror=\"document.title='taken'\">"
COOK = {
    "name": "Cookbook",
    "description": "Building applications on language models: techniques, costs, limits and what helps against them",
    "kg_db_id": "cookbook",
    "persona": {
        "name": "Cook",
        "instructions": "You recommend a technique, say what it costs, and name its limits.",
        "style": "concise",
        "greeting": "Ask me how to build something on a language model, what it costs, or what speaks against it.",
    },
    "custom_goal_mappings": {
        "debug": {"boost_types": ["has_limitation", "has_workaround"]},
        "learn": {"boost_types": ["requires"]},
    },
}
ODD_ID = "a/../b?c=1#d%41 ü"
ENDLESS = 300_000  # words: more than can be told before somebody stops them


def scripted_model(replies: Sequence[tuple[str, str]]) -> Scripted:
    """A model that answers a question by the first of some words that it holds."""

    def reply(prompt: Prompt) -> str:
        asked = prompt.messages[-1].text
        return next((text for word, text in replies if word in asked), "I do not know.")

    return Scripted(reply)


def odd_graph() -> PropertyGraph:
    """A graph whose names hold markup."""
    nodes = [
        Node(
            "odd:one", ("thing",), {"name": f"One {MARKUP}", "description": f"It says {MARKUP} about markup."}
        ),
        Node("odd:two", ("thing",), {"name": "Two", "description": "Another thing about markup."}),
        Node("odd:lim", ("limitation",), {"name": f"Limit {MARKUP}", "description": MARKUP}),
        Node(ODD_ID, ("thing",), {"name": "Three"}),
    ]
    edges = [("odd:one", MARKUP, "odd:two"), ("odd:one", "has_limitation", "odd:lim")]
    edges.append(("odd:two", "near", ODD_ID))
    return PropertyGraph.of(nodes, [Edge(*edge) for edge in edges])


def office_of(model: Scripted, store: Path | str = ":memory:") -> ExpertService:
    """The expert on cooking, and one on a graph with odd names."""
    graphs = GraphFolder(None, {"cookbook": cookbook, "odd": odd_graph})
    service = ExpertService(
        open_experts(store), graphs, ExpertModels({"scripted": lambda: model}, "scripted")
    )
    service.create(COOK, id="expert_cookbook")
    odd = {
        "name": f"Odd {MARKUP}",
        "description": MARKUP,
        "kg_db_id": "odd",
        "persona": {"name": "Odd", "greeting": f"Hello {MARKUP}"},
    }
    service.create(odd, id="expert_odd")
    return service


@contextmanager
def expert_server(service: ExpertService, rules: Callable[[], GuardRules] = GuardRules) -> Iterator[str]:
    """Serve an service on a free port of loopback until the block ends; gives the address."""
    server = LimitedServer(expert_app(service, rules()))
    socket = listening_socket("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive(), "the server listens")
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        socket.close()
