"""A retrieval explorer: a question, four lanes, and what becomes of the ranking when their weights change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from functools import cached_property

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset, Qrels
from kgot_lab.retrieval.presets import WEIGHTS, Weights
from kgot_lab.retrieval.stage import Stage, best
from kgot_lab.types import Document, Json, Query, Ranking, checked_documents
from kgot_lab.viz.explorer.explorer import Searches, Systems
from kgot_lab.viz.explorer.fusion_weights import (
    DEEPEST,
    LETTERS,
    Lanes,
    Mix,
    lanes_of,
    mixed,
    shares,
    weights_of,
)
from kgot_lab.viz.explorer.hits import DocumentShelf, hits_picture, hits_table
from kgot_lab.viz.live import Live, in_marimo
from kgot_lab.viz.static.drawing import Drawing
from kgot_lab.viz.static.markup import shortened
from kgot_lab.viz.static.table import Table

MOST_QUESTIONS = 500  # to choose from

__all__ = ["Explorer", "Lanes", "explore", "explore_dataset"]


def explore(
    lanes: Lanes | Mapping[str, Stage] | Stage,
    documents: Iterable[Document],
    *,
    queries: Iterable[Query | str] = (),
    qrels: Qrels | None = None,
    systems: Systems | None = None,
) -> Explorer:
    """Explore how lanes find documents: what each adds to a score, what a weight changes, which gold is among
    the first k.

    It starts with the first of the `queries`, of which a reader can choose; `qrels` says what is relevant to
    those that have an id. Any two of the `systems` can stand side by side, or one beside the sliders; one
    that is a function is built when it is chosen. `lanes` are Lanes, a mapping of their names to stages, or
    one stage that searches by words. Raises UnknownName for a lane of another name, and BadInput for anything
    else and for documents or queries of which two share an id.
    """
    lanes = lanes_of(lanes)
    known = tuple(query if isinstance(query, Query) else Query(query) for query in queries)
    twice = [id for id, times in Counter(query.id for query in known if query.id).items() if times > 1]
    if twice:
        raise BadInput(
            f"{len(twice)} query ids occur more than once, for example {twice[0]!r}; ids must be unique"
        )
    shelf = DocumentShelf({document.id: document for document in checked_documents(documents)})
    return Explorer(
        Searches(lanes, shelf, known, qrels or {}, systems or {}), known[0] if known else Query(""), Mix()
    )


def explore_dataset(dataset: Dataset | str = "hotpotqa", embedder: Embedder | None = None) -> Explorer:
    """Explore a data set with the lanes of the benchmark's "kg-os hybrid", and compare all of the benchmark's
    systems.

    Lanes: MiniLM (or another embedder), the stronger of BM25 and FTS5, and what the documents that LIKE finds
    are linked to. There is no intent lane. Locked questions are not shown. Raises what `load`, `minilm` and
    `fts5` raise.
    """
    from kgot_lab.benchmark.recall.datasets import (
        load_dataset,
    )  # here, since whoever explores lanes of their own needs none of this
    from kgot_lab.benchmark.recall.systems import systems
    from kgot_lab.embedding.vectors import minilm
    from kgot_lab.retrieval.bm25 import bm25
    from kgot_lab.retrieval.dense import meaning
    from kgot_lab.retrieval.fulltext import fts5, like
    from kgot_lab.retrieval.fusion import strongest
    from kgot_lab.retrieval.links import title_graph
    from kgot_lab.retrieval.neighbours import around

    develop = (load_dataset(dataset) if isinstance(dataset, str) else dataset).develop
    vectors, documents = embedder or minilm(), develop.documents
    lanes = Lanes(
        embedding=meaning(documents, vectors),
        text=strongest(bm25(documents), fts5(documents)),
        graph=around(title_graph(documents), like(documents)),
    )
    return explore(
        lanes, documents, queries=develop.queries, qrels=develop.qrels, systems=systems(develop, vectors)
    )


class Explorer:
    """What `explore` shows: two outputs in a cell, and then what the reader made of it, as a pipeline and its
    ranking.

    `question` and `mix` say where the sliders stand: where the reader left them, once the view is live.
    """

    def __init__(self, searches: Searches, question: Query, mix: Mix) -> None:
        self._searches, self.question, self.mix = searches, question, mix

    @cached_property
    def live(self) -> Live:
        """The view in the browser."""
        return Live(self.picture, self._data(), self.handle_message)

    def _ipython_display_(self) -> None:
        self.live.picture, self.live.data = self.picture, self._data()  # as the reader left it
        self.live._ipython_display_()

    _display_ = in_marimo

    def __repr__(self) -> str:
        searches, mix = self._searches, self.mix
        what = f"{len(searches.shelf.documents):,} documents, {len(searches.queries):,} questions, lanes {', '.join(searches.lanes.available)}"
        return f"<Explorer of {what}; {mix.preset or 'own weights'}, k={mix.k}: {shortened(self.question.text, 60)!r}>"

    def but(
        self,
        *,
        question: str | None = None,
        preset: str | None = None,
        weights: Weights | None = None,
        off: Collection[str] | None = None,
        k: int | None = None,
    ) -> Explorer:
        """The same explorer standing elsewhere; raises UnknownName for a preset or a lane, BadInput for
        weights or a k out of bounds.
        """
        wanted = weights_of(preset) if preset is not None else weights or self.mix.weights
        mix = Mix(wanted, self.mix.off if off is None else frozenset(off), self.mix.k if k is None else k)
        return Explorer(
            self._searches, self.question if question is None else self._searches.query(question), mix
        )

    @property
    def stage(self) -> Stage:
        """The pipeline that is shown, to be used like any other; raises BadInput when no lane counts."""
        return mixed(self._searches.working(self.question), self.mix)

    @property
    def ranking(self) -> Ranking:
        """What `stage` finds for the question, nothing when it is blank; raises BadInput when no lane counts."""
        stage = self.stage
        if not self.question.text.strip():
            return Ranking(self.question, (), stage.name)
        searched = self._searches.searched(self.question)
        return replace(
            best(searched.joined(shares(searched.stages, self.mix)), self.mix.k), system=stage.name
        )

    @property
    def picture(self) -> Drawing:
        """What is shown, as a static picture."""
        side, notes = self._searches.look(self.question, self.mix)
        told = [self._searches.gold_summary(side, self.mix.k), *notes] if side.ranking.hits else notes
        return hits_picture(
            self.question.text,
            self._searches.hits(side, self.mix.k),
            told,
            side.stage,
            self._searches.lanes.available,
        )

    def table(self) -> Table:
        """The hits that are shown, with the exact numbers behind each score."""
        side, _ = self._searches.look(self.question, self.mix)
        return hits_table(self._searches.hits(side, self.mix.k), shortened(self.question.text, 100))

    def handle_message(self, message: Mapping[str, Json]) -> Json:
        """The answer to a browser that tells of its question, its sliders and what it compares; nonsense is
        answered in words.
        """
        match message:
            case {"n": int(number), "wish": {"question": str(question)} as wish}:
                try:
                    mix, query = Mix.of(wish), self._searches.query(question)
                    answer = self._searches.answer(query, mix, wish)
                    self.question, self.mix = query, mix
                except BadInput as error:
                    answer = {"trouble": str(error)}
                return {"n": number, "answer": answer}
        return {}

    def _data(self) -> dict[str, Json]:
        searches = self._searches
        return {
            "view": "explorer",
            "title": f"A retrieval explorer over {len(searches.shelf.documents):,} documents",
            "lanes": [searches.format_retriever(name) for name in LETTERS],
            "presets": {name: asdict(weights) for name, weights in WEIGHTS.items()},
            "questions": [query.text for query in searches.queries[:MOST_QUESTIONS]],
            "systems": list(searches.systems),
            "deepest": DEEPEST,
            "state": {"question": self.question.text, **self.mix.to_json},
            "first": searches.answer(self.question, self.mix, {"sheet": True}),
        }
