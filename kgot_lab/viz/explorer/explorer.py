"""Retrieval explorer: a question, four retrievers, and the ranking as their weights change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, require, require_known, require_parts, require_unique
from kgot_lab.evaluation.dataset import Dataset, Qrels, checked_grade
from kgot_lab.retrieval.fusion import WEIGHT_PRESETS, Weights
from kgot_lab.retrieval.stage import Stage, best
from kgot_lab.text.words import searched_words
from kgot_lab.types import Document, Json, Query, Ranking, checked_documents
from kgot_lab.viz.explorer.fusion_weights import (
    LETTERS,
    MAX_HITS,
    Mix,
    Retrievers,
    ScorePart,
    SearchResults,
    as_retrievers,
    effective_weights,
    find_path,
    mix_pipeline,
)
from kgot_lab.viz.explorer.hits import (
    MAX_PATH_LENGTH,
    RETRIEVER_COLOURS,
    DocumentCollection,
    Gold,
    ShownHit,
    format_gold,
    hits_table,
    rank_change,
    rank_changes,
    ranks,
    score_sheet,
    show_hits,
)
from kgot_lab.viz.live import Live, LiveOutput, StaticOutput, describe_error
from kgot_lab.viz.static.markup import Markup, shorten
from kgot_lab.viz.static.pipeline import pipeline
from kgot_lab.viz.static.table import Table

# The data of a retrieval explorer: retrievers, documents, questions and systems, and cached searches.

# stages or functions that build one, as returned by kgot_lab.benchmark.recall.systems.systems
Systems = Mapping[str, Stage | Callable[[], Stage]]
Explanation = tuple[tuple[ScorePart, ...], str]  # the parts of a score, and a path

CACHE_SIZE = 20  # cached questions, and cached rankings of systems
BLANK_QUESTION = "The question is blank: type one, or choose one of the list."
SLIDERS_UNUSED = "Both sides are systems with weights of their own: of the sliders only k changes them."
NOTHING_FOUND = "No retriever found anything for this question: try other words."


@dataclass(frozen=True)
class Side:
    """A pipeline and its ranking. `why` returns the score parts and the path of a hit."""

    title: str
    stage: Stage
    ranking: Ranking
    why: Callable[[str], Explanation] = lambda id: ((), "")


class Searches:
    """Retrievers, documents, queries, relevance judgments and systems of an explorer.

    Explorers that are made from each other share them.
    """

    def __init__(
        self,
        retrievers: Retrievers,
        shelf: DocumentCollection,
        queries: Sequence[Query],
        qrels: Qrels,
        systems: Systems,
    ) -> None:
        self.retrievers, self.shelf, self.queries, self.systems = retrievers, shelf, queries, dict(systems)
        self._qrels = qrels
        self._known_queries = {_normalize_text(query.text): query for query in reversed(queries)}
        self._results = lru_cache(CACHE_SIZE)(lambda query: SearchResults(query, retrievers))
        self._rank = lru_cache(CACHE_SIZE)(lambda name, query: self._build_system(name).search(query))

    def query(self, text: str) -> Query:
        """Return the known query with this text, or a new one."""
        return self._known_queries.get(_normalize_text(text)) or Query(text)

    def gold(self, query: Query) -> Gold:
        """Return the relevance judgments of a query, or an empty mapping."""
        return self._qrels.get(query.id, {}) if query.id else {}

    def search(self, query: Query) -> SearchResults:
        """Return what each retriever found for a query, cached."""
        return self._results(query)

    def working_retrievers(self, query: Query) -> dict[str, Stage]:
        """Return the retrievers that can search for a query."""
        failed = self.search(query).failed if query.text.strip() else {}
        return {name: stage for name, stage in self.retrievers.available.items() if name not in failed}

    def search_mix(self, query: Query, mix: Mix) -> tuple[Side, list[str]]:
        """Search with a mix of retrievers, and return the result with notes for the reader.

        An invalid mix finds nothing, and the error is returned as a note.
        """
        retrievers, empty_ranking = self.working_retrievers(query), Ranking(query, ())
        try:
            weights = effective_weights(retrievers, mix)
        except BadInput as error:
            return Side("", Stage("no retriever", lambda ranking: empty_ranking), empty_ranking), [str(error)]
        if not query.text.strip():
            return Side("", mix_pipeline(retrievers, mix), empty_ranking), [BLANK_QUESTION]
        searched = self.search(query)
        ranking = searched.joined(weights)
        explain = lambda id: (searched.parts(id, weights), searched.path(id, weights))  # noqa: E731
        side = Side("", mix_pipeline(retrievers, mix), ranking, explain)
        return side, self._notes(searched, weights, ranking, mix)

    def _notes(
        self, searched: SearchResults, weights: Mapping[str, float], ranking: Ranking, mix: Mix
    ) -> list[str]:
        notes = [f"The {name} retriever could not search: {why}" for name, why in searched.failed.items()]
        if not ranking.hits:
            return [*notes, NOTHING_FOUND]
        empty = [name for name in weights if not searched.found[name].hits]
        notes += [
            f"The {name} retriever found nothing for this question, so no hit gets its weight of {weights[name]:.2f}."
            for name in empty
        ]
        if len(ranking.hits) < mix.k:
            is_all = len(ranking.hits) == len(self.shelf.documents)
            completeness = "that is every document" if is_all else "no more were found"
            count = "is 1 hit" if len(ranking.hits) == 1 else f"are {len(ranking.hits)} hits"
            notes.append(f"k is {mix.k}, and there {count}: {completeness}.")
        return notes

    def hits(self, side: Side, k: int, previous: Ranking | None = None) -> list[ShownHit]:
        """Return the first `k` hits of a side, with the change of rank from a previous ranking."""
        query = side.ranking.query
        query_words, gold = frozenset(searched_words(query.text)), self.gold(query)
        previous_ranks, hits = ranks(previous), []
        for rank, (id, score) in enumerate(side.ranking.hits[:k], start=1):
            title, snippet = self.shelf.pieces(id, query_words)
            parts, path = side.why(id)
            moved = None if previous is None else rank_change(rank, previous_ranks.get(id, 0))
            is_gold, path = gold.get(id, 0) > 0, shorten(path, MAX_PATH_LENGTH)
            hits.append(ShownHit(rank, id, title, snippet, score, is_gold, parts, path, moved))
        return hits

    def gold_summary(self, side: Side, k: int) -> str:
        """Describe which relevant documents a side found among its first `k`."""
        return format_gold(side.ranking, k, self.gold(side.ranking.query), self.shelf)

    # --- data for the browser ---

    def format_retriever(self, name: str) -> dict[str, Json]:
        """Describe a retriever for the browser, with a reason if it is missing."""
        stage = self.retrievers.available.get(name)
        missing = "" if stage else f"There is no {name} retriever here: its weight goes to the others."
        description = {"name": name, "letter": LETTERS[name], "missing": missing}
        return description | {"stage": stage.name if stage else ""}

    def response_data(self, query: Query, mix: Mix, request: Mapping[str, Json]) -> dict[str, Json]:
        """Return the data that the browser shows for a question and a mix.

        Raises BadInput if a system of `request` is unknown or fails, or if its weights are invalid.
        """
        side, notes = self.search_mix(query, mix)
        sides = self._compare_sides(query, mix, request)
        choices = request.get("a"), request.get("b")
        if sides and all(isinstance(choice, Mapping) and "system" in choice for choice in choices):
            notes = [SLIDERS_UNUSED]
        previous = self._previous_ranking(query, request.get("before"))
        return {
            "told": self.gold_summary(side, mix.k) if side.ranking.hits else "",
            "notes": notes,
            "retrievers": self._retriever_counts(query, mix),
            "hits": [] if sides else [hit.to_json for hit in self.hits(side, mix.k, previous)],
            "pipeline": self._draw_pipeline(side.stage),
            "stage": side.stage.name,
            "sides": sides,
            # the scores with which the browser ranks while a weight moves; without them it asks Python
            "sheet": score_sheet(self.search(query), self.shelf, self.gold(query))
            if request.get("sheet") and query.text.strip()
            else None,
        }

    def _previous_ranking(self, query: Query, mix_data: Json) -> Ranking | None:
        ranking = (
            self.search_mix(query, Mix.of(mix_data))[0].ranking if isinstance(mix_data, Mapping) else None
        )
        return ranking if ranking and ranking.hits else None

    def _retriever_counts(self, query: Query, mix: Mix) -> dict[str, Json]:
        """Return the share and the number of hits of each retriever."""
        try:
            weights = effective_weights(self.working_retrievers(query), mix)
        except BadInput:
            weights = {}
        found = self.search(query).found if query.text.strip() else {}
        counts = {name: len(ranking.hits) for name, ranking in found.items()}
        names = self.retrievers.available
        return {name: {"share": weights.get(name, 0.0), "found": counts.get(name)} for name in names}

    def _draw_pipeline(self, stage: Stage) -> Markup:
        colours = {
            retriever.name: RETRIEVER_COLOURS[name] for name, retriever in self.retrievers.available.items()
        }
        return pipeline(stage, colours=colours).svg

    # --- two systems side by side ---

    def _compare_sides(self, query: Query, mix: Mix, request: Mapping[str, Json]) -> list[Json]:
        """Compare two systems, or return an empty list if there is nothing to compare."""
        if not request.get("a") or not query.text.strip():
            return []
        first, second = (self._make_side(query, mix, request.get(which)) for which in ("a", "b"))
        return [
            self._format_side(first, second, mix.k, is_first=True),
            self._format_side(second, first, mix.k, is_first=False),
        ]

    def _make_side(self, query: Query, mix: Mix, choice: Json) -> Side:
        match choice:
            case {"system": str(name)}:
                return self._system_side(query, name)
            case {"weights": _}:
                title, side_mix = "Kept weights", replace(Mix.of(choice), k=mix.k)
            case _:
                title, side_mix = "The sliders", mix
        side, notes = self.search_mix(query, side_mix)
        return replace(side, title=title if side.ranking.hits else f"{title}. {notes[0]}")

    def _system_side(self, query: Query, name: str) -> Side:
        require_known("system", self.systems, name)
        try:
            stage, ranking = self._build_system(name), self._rank(name, query)
        except Exception as error:  # a system may be user code, and a browser shows no traceback
            raise BadInput(f"The system {name!r} could not search: {describe_error(error)}") from error
        return Side(name, stage, ranking, lambda id: ((), find_path(id, ranking)))

    def _build_system(self, name: str) -> Stage:
        system = self.systems[name]
        stage = system if isinstance(system, Stage) else system()
        self.systems[name] = stage
        return stage

    def _format_side(self, side: Side, other: Side, k: int, *, is_first: bool) -> dict[str, Json]:
        hits = self.hits(side, k)
        moves = rank_changes(hits, k, other.ranking, is_first=is_first)
        return {
            "title": side.title,
            "stage": side.stage.name,
            "told": self.gold_summary(side, k),
            "hits": [replace(hit, moved=move).to_json for hit, move in zip(hits, moves, strict=True)],
            "pipeline": self._draw_pipeline(side.stage),
        }


def _normalize_text(text: str) -> str:
    return " ".join(text.casefold().split())


MAX_QUESTIONS = 500  # maximum questions in the list

__all__ = ["Explorer", "Retrievers", "explore", "explore_dataset"]


@check_arguments
def explore(
    retrievers: Retrievers | Mapping[str, Stage] | Stage,
    documents: Iterable[Document],
    *,
    queries: Iterable[Query | str] = (),
    qrels: Qrels | None = None,
    systems: Systems | None = None,
) -> Explorer:
    """Explore interactively how retrievers find documents, and what their weights change.

    It shows what each retriever adds to a score, and which relevant documents are in the top k. The explorer
    starts with the first of the `queries`; the reader can choose among them. `qrels` holds the relevance
    judgments of queries with an id. Any two of the `systems` can be compared, or one with the sliders. A
    system that is a function is built when it is chosen. `retrievers` are Retrievers, a mapping from their names to
    stages, or one stage, taken as lexical retrieval.

    Raises UnknownName if a retriever has another name. Raises BadInput for other invalid arguments, and if
    two documents or queries share an id.
    """
    retrievers, queries = as_retrievers(retrievers), list(queries)
    for system in (systems or {}).values():
        require_parts(system, ("__call__",), "a system is a Stage, or a function that builds one")
    known_queries = tuple(query if isinstance(query, Query) else Query(query) for query in queries)
    require_unique([query.id for query in known_queries if query.id], "query ids")
    by_id = {document.id: document for document in checked_documents(documents)}
    require_known("query of qrels", {query.id for query in known_queries}, *(qrels or {}))
    for query, judged in (qrels or {}).items():
        require(judged, Mapping, "qrels are {query id: {document id: grade}}")
        for id, grade in judged.items():
            checked_grade(grade, query, id)
    shelf = DocumentCollection(by_id)
    searches = Searches(retrievers, shelf, known_queries, qrels or {}, systems or {})
    return Explorer(searches, known_queries[0] if known_queries else Query(""), Mix())


@check_arguments
def explore_dataset(dataset: Dataset | str = "hotpotqa", embedder: Embedder | None = None) -> Explorer:
    """Explore a data set with the retrievers of the benchmark's "kg-os hybrid" and all its systems.

    The retrievers are MiniLM (or `embedder`), the stronger of BM25 and FTS5, and the documents linked to
    those that LIKE finds. There is no intent retriever. Questions of the test split are not shown. Raises
    what `load_dataset`, `minilm` and `fts5` raise.
    """
    # not needed by `explore` with one's own retrievers
    from kgot_lab.benchmark.recall.datasets import load_dataset
    from kgot_lab.benchmark.recall.systems import systems

    dev_split = (load_dataset(dataset) if isinstance(dataset, str) else dataset).dev
    built = systems(dev_split, embedder)
    retrievers = Retrievers(*(stage for _, stage in built["kg-os hybrid"]().inputs))
    return explore(
        retrievers, dev_split.documents, queries=dev_split.queries, qrels=dev_split.qrels, systems=built
    )


@check_arguments
class Explorer(LiveOutput):
    """The result of `explore`: an interactive view, whose settings are available as a pipeline and a ranking.

    `question` and `mix` are the current settings, as the reader left them once the view is live.
    """

    def __init__(self, searches: Searches, question: Query, mix: Mix) -> None:
        self._searches, self.question, self.mix = searches, question, mix

    @cached_property
    def live(self) -> Live:  # type: ignore[override]  # made when it is first shown
        """The view in the browser."""
        return Live(self.picture, self._data(), self.handle_message)

    def _refresh(self) -> None:
        self.live.picture, self.live.data = self.picture, self._data()  # as the reader left it

    def __repr__(self) -> str:
        searches, mix = self._searches, self.mix
        sizes = f"{len(searches.shelf.documents):,} documents, {len(searches.queries):,} questions"
        what = f"{sizes}, retrievers {', '.join(searches.retrievers.available)}"
        return f"<Explorer of {what}; {mix.preset or 'own weights'}, k={mix.k}: {shorten(self.question.text, 60)!r}>"

    def but(
        self,
        *,
        question: str | None = None,
        preset: str | None = None,
        weights: Weights | None = None,
        off: Collection[str] | None = None,
        k: int | None = None,
    ) -> Explorer:
        """Return a copy of the explorer with some settings changed.

        Raises UnknownName if the preset or a retriever is unknown, and BadInput if the weights or `k` are out
        of bounds.
        """
        if preset is not None:
            require_known("preset", WEIGHT_PRESETS, preset)
        wanted = weights or self.mix.weights if preset is None else WEIGHT_PRESETS[preset]
        mix = Mix(wanted, self.mix.off if off is None else frozenset(off), self.mix.k if k is None else k)
        query = self.question if question is None else self._searches.query(question)
        return Explorer(self._searches, query, mix)

    @property
    def stage(self) -> Stage:
        """The current pipeline, a normal stage.

        Raises BadInput if no retriever has a weight.
        """
        return mix_pipeline(self._searches.working_retrievers(self.question), self.mix)

    @property
    def ranking(self) -> Ranking:
        """The hits of `stage` for the question, none if it is blank.

        Raises BadInput if no retriever has a weight.
        """
        stage = self.stage
        if not self.question.text.strip():
            return Ranking(self.question, (), stage.name)
        searched = self._searches.search(self.question)
        fused = searched.joined(effective_weights(searched.stages, self.mix))
        return replace(best(fused, self.mix.k), system=stage.name)

    @property
    def picture(self) -> StaticOutput:
        """The current hits as they are shown where no live view can be drawn."""
        side, notes = self._searches.search_mix(self.question, self.mix)
        lines = [self._searches.gold_summary(side, self.mix.k), *notes] if side.ranking.hits else notes
        hits, retrievers = self._searches.hits(side, self.mix.k), self._searches.retrievers.available
        return show_hits(self.question.text, hits, lines, side.stage, retrievers)

    def table(self) -> Table:
        """Return the shown hits as a table, with the exact numbers behind each score."""
        side, _ = self._searches.search_mix(self.question, self.mix)
        return hits_table(self._searches.hits(side, self.mix.k), shorten(self.question.text, 100))

    def handle_message(self, message: Mapping[str, Json]) -> Json:
        """Return the reply to a browser message about question, sliders and comparison.

        An invalid wish is answered with an error text.
        """
        match message:
            case {"n": int(number), "wish": {"question": str(question)} as request}:
                try:
                    mix, query = Mix.of(request), self._searches.query(question)
                    answer = self._searches.response_data(query, mix, request)
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
            "retrievers": [searches.format_retriever(name) for name in LETTERS],
            "presets": {name: asdict(weights) for name, weights in WEIGHT_PRESETS.items()},
            "questions": [query.text for query in searches.queries[:MAX_QUESTIONS]],
            "systems": list(searches.systems),
            "deepest": MAX_HITS,
            "state": {"question": self.question.text, **self.mix.to_json},
            "first": searches.response_data(self.question, self.mix, {"sheet": True}),
        }
