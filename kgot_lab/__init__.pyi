# The public names, in the order in which one meets them: for editors and type checkers, and for __init__.py.
# ruff: noqa: I001

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # so that mypy checks the modules of a cycle of imports in their own order
    from kgot_lab.api.ask import ask
    from kgot_lab.api.find import find
    from kgot_lab.documents.folder import read_documents
    from kgot_lab.kgos.query.graph_loading import read_graph
    from kgot_lab.kgos.query.graph_loading import load_graph
    from kgot_lab.kgos.query.question_arguments import ask_by_name as query
    from kgot_lab.llm import connect
    from kgot_lab.stores.opening import open_store
    from kgot_lab.tools.search import search
    from kgot_lab.tools.tool import python
    from kgot_lab.tools.tool import ask_model
    from kgot_lab.api.approve import approve
    from kgot_lab.loop.controller import think
    from kgot_lab.api.asynchronous import aresume
    from kgot_lab.api.asynchronous import athink
    from kgot_lab.loop.controller import solve
    from kgot_lab.loop.trace import load_run
    from kgot_lab.loop.replay.replay import replay
    from kgot_lab.loop.replay.replay import verify
    from kgot_lab.loop.replay.replay import resume
    from kgot_lab.loop.replay.replay import fork
    from kgot_lab.loop.replay.forks import recorded_fork
    from kgot_lab.loop.trace import graph_after
    from kgot_lab.memory.user_memory import open_memory
    from kgot_lab.memory import claims
    from kgot_lab.api.expert import expert
    from kgot_lab.domains import npc
    from kgot_lab.domains import investment
    from kgot_lab.api.show import show
    from kgot_lab.viz.stepping.stepper import stepper
    from kgot_lab.viz.explorer.explorer import explore
    from kgot_lab.analogy.delta_edges import compare_texts
    from kgot_lab.viz.html import html
    from kgot_lab.diagnostics.notebook import doctor
    from kgot_lab.viz.plots import plot_named as plot
    from kgot_lab.viz.exercises import exercise
    from kgot_lab.viz.exercises import hand_in
    from kgot_lab.io.files import bundled_path as bundled_file
    from kgot_lab.embedding.embedders import embedder
    from kgot_lab.types import ranked
    from kgot_lab.benchmark.recall.datasets import load_dataset
    from kgot_lab.benchmark.recall.systems import systems
    from kgot_lab.benchmark.recall.bench import bench
    from kgot_lab.benchmark.recall.bench import bench_families
    from kgot_lab.types import Document
    from kgot_lab.types import Node
    from kgot_lab.types import Edge
    from kgot_lab.types import Triple
    from kgot_lab.types import Diff
    from kgot_lab.types import Query
    from kgot_lab.types import Hit
    from kgot_lab.types import Ranking
    from kgot_lab.graph.property_graph import PropertyGraph
    from kgot_lab.retrieval.stage import Stage
    from kgot_lab.loop.trace import Trace
    from kgot_lab.loop.limits import Limits
    from kgot_lab.loop.replay.replay import Resources
    from kgot_lab.evaluation.dataset import Dataset
    from kgot_lab.evaluation.results import Plan
    from kgot_lab.evaluation.reports import Report
    from kgot_lab.errors import LabError

__version__: str
__all__ = [
    "Dataset", "Diff", "Document", "Edge", "Hit", "LabError", "Limits", "Node", "Plan", "PropertyGraph",
    "Query", "Ranking", "Report", "Resources", "Stage", "Trace", "Triple", "approve", "aresume", "ask",
    "ask_model", "athink", "bench", "bench_families", "bundled_file", "claims", "compare_texts",
    "connect", "doctor", "embedder", "exercise", "expert", "explore", "find", "fork", "graph_after",
    "hand_in", "html", "investment", "load_dataset", "load_graph", "load_run", "npc", "open_memory",
    "open_store", "plot", "python", "query", "ranked", "read_documents", "read_graph", "recorded_fork",
    "replay", "resume", "search", "show", "solve", "stepper", "systems", "think", "verify",
]  # fmt: skip
