"""Show a value in the view of its type, found in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from kgot_lab.analogy.delta_edges import ComputedEdges, Verifier
from kgot_lab.arguments import check_arguments, require_path
from kgot_lab.documents.folder import read_documents
from kgot_lab.domains.investment.briefing import Briefing
from kgot_lab.domains.npc.models import VisibleWorld
from kgot_lab.errors import BadInput, describe_value, require_count, require_options
from kgot_lab.evaluation.reports import Contest, Report
from kgot_lab.evaluation.tables import Grid
from kgot_lab.experts.session import ExpertTalk, TalkAnswer
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import is_data_frame, is_networkx, looks_like_triple
from kgot_lab.kgos.editing import Editor
from kgot_lab.kgos.extraction.entity_graph import SCAFFOLD, entity_graph, is_entity_graph, with_relations
from kgot_lab.kgos.methods.dimensions import DimensionProfile
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.impact_analysis import Impact
from kgot_lab.kgos.methods.search.results import SearchResult
from kgot_lab.kgos.query.graph_loading import read_graph
from kgot_lab.loop.events import Event
from kgot_lab.loop.replay.replay import Fork
from kgot_lab.loop.trace import Trace, is_trace, load_run
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.certificate import Certificate
from kgot_lab.memory.user_memory import Memory
from kgot_lab.retrieval.stage import Stage
from kgot_lab.similarity.delta import TextPair
from kgot_lab.text.cleaning import printable_line
from kgot_lab.tools.search import FoundPassages
from kgot_lab.types import Document, Edge, Ranking, checked_documents
from kgot_lab.viz.analogy import Texts, structure
from kgot_lab.viz.editing import edit
from kgot_lab.viz.experts import show_talk, show_thought
from kgot_lab.viz.graph.view import show_graph
from kgot_lab.viz.guesses import guess_first
from kgot_lab.viz.methods import impact_picture, profile_picture, search_picture
from kgot_lab.viz.static.fact_pictures import certificate_picture, show_briefing
from kgot_lab.viz.static.pipeline import pipeline
from kgot_lab.viz.static.table import Sheet, Table, format_cell, table
from kgot_lab.viz.stepping.stepper import stepper
from kgot_lab.viz.worlds import visible_graph


def ranking_table(ranking: Ranking, *, limit: int = 20) -> Table:
    """Tabulate at most `limit` hits of a ranking, with scores and what each retriever reported about them."""
    require_count(limit, 1, "limit")
    rows = tuple(
        (str(rank), hit.id, f"{hit.score:.4g}", "; ".join(map(str, ranking.why(hit.id))))
        for rank, hit in enumerate(islice(ranking.hits, limit), start=1)
    )
    name = f"{ranking.query.text} ({ranking.system})" if ranking.system else ranking.query.text
    return Table((Sheet(("rank", "document", "score", "why"), rows, len(ranking.hits), name),))


def report_table(report: Report) -> Table:
    """Tabulate a report: the scores of each system and the comparison with the baseline.

    An asterisk marks the best value.
    """

    def sheet(grid: Grid) -> Sheet:
        rows = tuple(tuple(cell.text + "*" * cell.bold for cell in row) for row in grid.rows)
        return Sheet(grid.columns, rows, len(rows), grid.title)

    return Table(tuple(map(sheet, report.grids())))


def _method_table(found: MethodResult, *, limit: int = 50) -> Table:
    """Tabulate the rows of a result under its title, with the reasons below.

    An empty result says so.
    """
    require_count(limit, 1, "limit")
    rows = [tuple(map(format_cell, row)) for row in found.rows()]
    sheets = [Sheet(found.COLUMNS, tuple(rows[:limit]), len(rows), printable_line(found.title))]
    if reasons := tuple((printable_line(line),) for line in found.why):
        sheets.append(Sheet(("why",), reasons, len(reasons), "Why"))
    return Table(tuple(sheets))


@wraps(show_graph)
def _show_store(store: Any, **options: Any) -> object:
    return _show_property_graph(store.graph(), **options)


@wraps(show_graph)
def _show_property_graph(graph: PropertyGraph, **options: Any) -> object:
    """Show a graph. Of sentences with the entities in them, the entities and their relations come first."""
    if is_entity_graph(graph):
        graph, options = with_relations(graph), {"hidden": SCAFFOLD, **options}
    return show_graph(graph, **options)


@wraps(show_graph)
def _show_documents(documents: Iterable[Document], **options: Any) -> object:
    return show_graph(entity_graph(checked_documents(documents)), **{"hidden": SCAFFOLD, **options})


@wraps(show_graph)
def _show_folder(folder: str | Path, **options: Any) -> object:
    return _show_documents(read_documents(folder).documents, **options)


def _show_beliefs(beliefs: Beliefs | Memory, *, height: int = 460) -> object:
    return show_graph(PropertyGraph.from_triples(beliefs.facts()), height=height)


def _show_visible_world(seen: VisibleWorld, *, height: int = 460) -> object:
    return show_graph(visible_graph(seen), height=height)


def _show_edges(
    edges: ComputedEdges,
    *,
    texts: PropertyGraph | Texts | None = None,
    skeletons: Texts | None = None,
    aligner: Verifier | None = None,
) -> object:
    return structure(edges, texts, skeletons=skeletons, aligner=aligner)


class _View(NamedTuple):
    fits: Callable[[object], bool]
    show: Callable[..., object]


def _is_instance(*kinds: type) -> Callable[[object], bool]:
    return lambda what: isinstance(what, kinds)


def _is_store(what: object) -> bool:
    return not isinstance(what, type) and all(hasattr(what, name) for name in ("graph", "schema", "apply"))


def _is_folder(what: object) -> bool:
    return isinstance(what, str | Path) and Path(what).is_dir()


_VIEWS: Mapping[str, _View] = {
    "a PropertyGraph": _View(_is_instance(PropertyGraph), _show_property_graph),
    "a NetworkX graph": _View(is_networkx, show_graph),
    "a pandas table of edges": _View(is_data_frame, show_graph),
    "a store": _View(_is_store, _show_store),
    "a memory": _View(_is_instance(Beliefs, Memory), _show_beliefs),
    "a certificate": _View(_is_instance(Certificate), certificate_picture),
    "a briefing": _View(_is_instance(Briefing), show_briefing),
    "a visible world": _View(_is_instance(VisibleWorld), _show_visible_world),
    "a run": _View(_is_instance(Trace), stepper),
    "a fork": _View(_is_instance(Fork), lambda fork: stepper(fork.events)),
    "found passages": _View(_is_instance(FoundPassages), FoundPassages.grid),
    "a ranking": _View(_is_instance(Ranking), ranking_table),
    "a comparison of two texts": _View(_is_instance(TextPair), structure),
    "delta edges": _View(_is_instance(ComputedEdges), _show_edges),
    "a search over a graph": _View(_is_instance(SearchResult), search_picture),
    "an impact": _View(_is_instance(Impact), impact_picture),
    "a profile of two nodes": _View(_is_instance(DimensionProfile), profile_picture),
    "an answer of a method": _View(_is_instance(MethodResult), _method_table),
    "a stage": _View(_is_instance(Stage), pipeline),
    "a report": _View(_is_instance(Report), report_table),
    "an editor": _View(_is_instance(Editor), edit),
    "a talk with an expert": _View(_is_instance(ExpertTalk), show_talk),
    "an answer of an expert": _View(_is_instance(TalkAnswer), show_thought),
    "a contest to guess at": _View(_is_instance(Contest), guess_first),
    "a folder of documents": _View(_is_folder, _show_folder),
}
_LIST_VIEWS: Mapping[str, _View] = {  # by what the first item is
    "a list of triples": _View(looks_like_triple, show_graph),
    "a list of edges": _View(_is_instance(Edge), show_graph),
    "a list of events": _View(_is_instance(Event), stepper),
    "a list of documents": _View(_is_instance(Document), _show_documents),
    "rows of a table": _View(_is_instance(Mapping), table),
}


@check_arguments
def show(what: object, *, color: str = "", size: str = "", width: str = "", **options: Any) -> object:
    """Show a graph, a run, a ranking, a report or another value in its view.

    Other values are a world as a character sees it, a query method's answer, a comparison, a certificate,
    rows, a conversation with an expert (with a box to ask), and one of its answers (with its derivation). Of a
    folder, or of documents, the entities and their relations are shown, and documents and sentences on request. A
    graph may be a PropertyGraph, a NetworkX graph, triples, edges, a pandas table of edges, a store or a file. A run
    may be a trace, its events or a fork. Options are those of the view: `highlight`, `height`, `positions` of
    a graph, `forks`, `live`, `height` of a run, `limit` of a ranking, a search or rows, `per_ring` of an
    impact, `question` and `answer` of a certificate, `node` of an editor. The nodes of a graph have a `color` and
    a `size` by a property, "degree" or "community", its edges a `width` by a property. Raises BadInput for any other
    value, listing what can be shown, and for an option that the view does not have.
    """
    by = {name: each for name, each in (("color", color), ("size", size), ("width", width)) if each}
    options |= {"by": by} if by else {}
    if isinstance(what, str | Path):
        require_path(str(what), "what")
    if isinstance(what, str | Path) and not _is_folder(what):
        if not (path := Path(what).expanduser()).is_file():
            raise BadInput(f"show() shows values, folders and files, and there is no file {what}")
        what = load_run(path) if is_trace(path) else read_graph(path)
    for name, view in _VIEWS.items():
        if view.fits(what):
            return _show_in(name, view, what, options)
    if isinstance(what, Iterable) and not isinstance(what, str | bytes | Mapping):
        items = list(what)
        if not items:
            raise BadInput(f"there is nothing to show in an empty {type(what).__name__}")
        for name, view in _LIST_VIEWS.items():
            if view.fits(items[0]):
                return _show_in(name, view, items, options)
    lists = ", ".join(name.removeprefix("a list of ") for name in _LIST_VIEWS)
    raise BadInput(f"show() shows {', '.join(_VIEWS)}, a list of {lists}; not {describe_value(what)}")


def _show_in(name: str, view: _View, what: object, options: Mapping[str, Any]) -> object:
    if "by" in options and "by" not in signature(view.show).parameters:
        raise BadInput(f"color, size and width are those of a graph, and this is {name}")
    require_options(view.show, options, f"the view of {name}")
    return view.show(what, **options)
