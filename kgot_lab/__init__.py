"""A Jupyter workbench that shows how a language model grows and queries a knowledge graph, and measures
whether it helps.

This is the public API: `import kgot_lab as lab`, then `lab.ask`, `lab.show`, `lab.open_store` and the other
names of `__all__`, each loaded when it is first used. Everything else is in its subpackage.
"""

TYPE_CHECKING = False  # not that of typing, whose import would take longer than all of this file; type checkers know the name
if TYPE_CHECKING:
    from kgot_lab.analogy.delta_edges import compare_texts
    from kgot_lab.api.approve import approve
    from kgot_lab.api.ask import ask
    from kgot_lab.api.asynchronous import aresume, athink
    from kgot_lab.api.expert import expert
    from kgot_lab.api.find import find
    from kgot_lab.api.show import show
    from kgot_lab.benchmark.recall.bench import bench, bench_families
    from kgot_lab.benchmark.recall.datasets import load_dataset
    from kgot_lab.benchmark.recall.systems import systems
    from kgot_lab.diagnostics.notebook import doctor
    from kgot_lab.documents.folder import read_documents
    from kgot_lab.embedding.embedders import embedder
    from kgot_lab.errors import LabError
    from kgot_lab.evaluation.dataset import Dataset
    from kgot_lab.evaluation.reports import Report
    from kgot_lab.evaluation.results import Plan
    from kgot_lab.graph.property_graph import PropertyGraph
    from kgot_lab.io.files import bundled_path as bundled_file
    from kgot_lab.kgos.query.graph_loading import read_graph
    from kgot_lab.llm import connect
    from kgot_lab.loop.controller import solve, think
    from kgot_lab.loop.limits import Limits
    from kgot_lab.loop.replay.forks import recorded_fork
    from kgot_lab.loop.replay.replay import Resources, fork, replay, resume, verify
    from kgot_lab.loop.trace import Trace, graph_after, load_run
    from kgot_lab.memory.user_memory import open_memory
    from kgot_lab.retrieval.stage import Stage
    from kgot_lab.stores.opening import open_store
    from kgot_lab.tools.search import search
    from kgot_lab.tools.tool import ask_model, python
    from kgot_lab.types import Diff, Document, Edge, Hit, Node, Query, Ranking, Triple, ranked
    from kgot_lab.viz.exercises import exercise, hand_in
    from kgot_lab.viz.explorer.explorer import explore
    from kgot_lab.viz.html import html
    from kgot_lab.viz.plots import plot_named as plot
    from kgot_lab.viz.stepping.stepper import stepper

__version__ = "0.1.0"

_MODULES = {  # the module of each name, in the order in which one meets them; behind a colon the name it has there, if another
    "ask": "api.ask",
    "find": "api.find",
    "read_documents": "documents.folder",
    "read_graph": "kgos.query.graph_loading",
    "connect": "llm",
    "open_store": "stores.opening",
    "search": "tools.search",
    "python": "tools.tool",
    "ask_model": "tools.tool",
    "approve": "api.approve",
    "think": "loop.controller",
    "aresume": "api.asynchronous",
    "athink": "api.asynchronous",
    "solve": "loop.controller",
    "load_run": "loop.trace",
    "replay": "loop.replay.replay",
    "verify": "loop.replay.replay",
    "resume": "loop.replay.replay",
    "fork": "loop.replay.replay",
    "recorded_fork": "loop.replay.forks",
    "graph_after": "loop.trace",
    "open_memory": "memory.user_memory",
    "expert": "api.expert",
    "show": "api.show",
    "stepper": "viz.stepping.stepper",
    "explore": "viz.explorer.explorer",
    "compare_texts": "analogy.delta_edges",
    "html": "viz.html",
    "doctor": "diagnostics.notebook",
    "plot": "viz.plots:plot_named",
    "exercise": "viz.exercises",
    "hand_in": "viz.exercises",
    "bundled_file": "io.files:bundled_path",
    "embedder": "embedding.embedders",
    "ranked": "types",
    "load_dataset": "benchmark.recall.datasets",
    "systems": "benchmark.recall.systems",
    "bench": "benchmark.recall.bench",
    "bench_families": "benchmark.recall.bench",
    "Document": "types",
    "Node": "types",
    "Edge": "types",
    "Triple": "types",
    "Diff": "types",
    "Query": "types",
    "Hit": "types",
    "Ranking": "types",
    "PropertyGraph": "graph.property_graph",
    "Stage": "retrieval.stage",
    "Trace": "loop.trace",
    "Limits": "loop.limits",
    "Resources": "loop.replay.replay",
    "Dataset": "evaluation.dataset",
    "Plan": "evaluation.results",
    "Report": "evaluation.reports",
    "LabError": "errors",
}

__all__ = [  # written out, since editors and type checkers do not read the table; a test holds the two together
    "Dataset",
    "Diff",
    "Document",
    "Edge",
    "Hit",
    "LabError",
    "Limits",
    "Node",
    "Plan",
    "PropertyGraph",
    "Query",
    "Ranking",
    "Report",
    "Resources",
    "Stage",
    "Trace",
    "Triple",
    "approve",
    "aresume",
    "ask",
    "ask_model",
    "athink",
    "bench",
    "bench_families",
    "bundled_file",
    "compare_texts",
    "connect",
    "doctor",
    "embedder",
    "exercise",
    "expert",
    "explore",
    "find",
    "fork",
    "graph_after",
    "hand_in",
    "html",
    "load_dataset",
    "load_run",
    "open_memory",
    "open_store",
    "plot",
    "python",
    "ranked",
    "read_documents",
    "read_graph",
    "recorded_fork",
    "replay",
    "resume",
    "search",
    "show",
    "solve",
    "stepper",
    "systems",
    "think",
    "verify",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a name of the public API when it is first used.

    Raises AttributeError for an unknown name, with suggestions.
    """
    if name not in _MODULES:
        raise AttributeError(_suggestion_message(name))
    from importlib import import_module

    module, _, original = _MODULES[name].partition(":")
    found: object = getattr(import_module(f"kgot_lab.{module}"), original or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})


def _suggestion_message(name: str) -> str:
    from difflib import get_close_matches

    suggestions = get_close_matches(name, _MODULES, n=3)
    advice = (
        f"did you mean {' or '.join(suggestions)}?" if suggestions else f"it offers {', '.join(_MODULES)}"
    )
    return f"kgot_lab has no {name!r}; {advice} Other names are in subpackages, such as kgot_lab.retrieval.lexical"
