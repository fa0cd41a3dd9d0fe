"""The search over documents: its retriever, the passages it finds, and the tool."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import NotInstalled, ToolFailed, require_count, short_repr
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.multihop.retriever import convex_hybrid, hybrid_multihop
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.analysis import analyzer
from kgot_lab.text.cleaning import checked_text
from kgot_lab.text.function_words import languages_of_word
from kgot_lab.text.words import WORD, search_form, stem, text_sentences
from kgot_lab.tools.files import read_attachment
from kgot_lab.tools.tool import Result, TextTool, Tool, digest_of
from kgot_lab.types import Document, Ranking, checked_documents, main_text

SearchProgress = Callable[[int, int], object]  # embedded so far, and in all


def default_retriever(
    documents: Iterable[Document], progress: SearchProgress | None = None, *, linked: bool = True
) -> Stage:
    """Build the retriever of every search over documents: hybrid, re-ranked by the multi-hop retriever.

    Without `linked` it is the hybrid alone, which embeds no sentences: enough where all documents are found.
    Where most of the text is in another language than English, it is the hybrid with a multilingual embedding
    model. Without the model it is BM25 alone, with a warning. `progress(done, total)` counts the passages and
    sentences that had no stored vector.
    """
    # not needed with a custom retriever
    from kgot_lab.embedding.vectors import minilm, multilingual_e5

    documents = checked_documents(documents)
    is_english = analyzer(map(main_text, documents)).is_english
    try:
        if not is_english:
            return convex_hybrid(documents, multilingual_e5(progress=progress), "multilingual embeddings")
        return (hybrid_multihop if linked else convex_hybrid)(documents, minilm(progress=progress))
    except NotInstalled as error:
        reason = "results will be worse" if is_english else "since most of these texts are not in English"
        warnings.warn(f"searching by words alone, {reason}: {error}", stacklevel=3)
        return bm25(documents)


# What a search finds, as shown to people.

_SHOWN_SENTENCE = 160  # characters
_MAX_COMPARED = 200  # sentences of a passage, the best by words, since embedding takes milliseconds for each
_NO_WORD_TO_FIND = "no word of it says what to find, so these may have nothing to do with it"
_NO_SHARED_WORD = "no passage has a word of it, so these may have nothing to do with it"


@dataclass(frozen=True)
class FoundPassage:
    """A passage that was found: its rank from 1, its score, and its sentence nearest to the question."""

    rank: int
    score: float
    document: Document
    sentence: str

    @property
    def file(self) -> str:
        """The file it was read from, or the id of a document that was not."""
        return self.document.id.rpartition("#")[0] or self.document.id


@dataclass(frozen=True, repr=False)
class FoundPassages(Sequence[FoundPassage]):
    """The passages found for a question, best first, with the ranking: `ranking.why(id)` says why."""

    ranking: Ranking
    passages: tuple[FoundPassage, ...]

    @overload
    def __getitem__(self, index: int) -> FoundPassage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FoundPassage]: ...
    def __getitem__(self, index: int | slice) -> FoundPassage | Sequence[FoundPassage]:
        return self.passages[index]

    def __len__(self) -> int:
        return len(self.passages)

    @property
    def shares_words(self) -> bool:
        """Whether a passage has a word of the question, function words aside."""
        texts = [f"{found.document.title} {found.document.text}" for found in self.passages]
        question = search_form(self.ranking.query.text)
        asked = " ".join(word for word in WORD.findall(question) if not languages_of_word(word))
        words = analyzer([*texts, asked])
        known = {stem(word) for text in texts for word in words(text)}
        has_only_function_words = not asked and WORD.search(question) is not None
        return has_only_function_words or any(stem(word) in known for word in words(asked))

    def grid(self) -> Grid:
        """Return the passages as a table: rank, score, title, file and sentence.

        Its title says where no passage has a word of the question.
        """
        rows = (
            (f"{found.rank}", format_decimal(found.score), found.document.title, found.file, _shown(found))
            for found in self.passages
        )
        columns = ("rank", "score", "title", "file", "sentence")
        note = "" if self.shares_words else f" ({_NO_SHARED_WORD})"
        if all(map(languages_of_word, WORD.findall(search_form(self.ranking.query.text)))):
            note = f" ({_NO_WORD_TO_FIND})"
        cells = tuple(tuple(map(Cell, row)) for row in rows)
        return Grid(f"{self.ranking.query.text}{note}", columns, cells, words=True)

    def __repr__(self) -> str:
        return self.grid().text

    def _repr_html_(self) -> str:
        return self.grid().html


def _shown(found: FoundPassage) -> str:
    sentence = found.sentence
    return sentence if len(sentence) <= _SHOWN_SENTENCE else f"{sentence[: _SHOWN_SENTENCE - 2]} …"


def find_passages(
    question: str, documents: Iterable[Document], *, k: int = 5, progress: SearchProgress | None = None
) -> FoundPassages:
    """Find the k passages that fit a question best, each with its best sentence.

    Raises BadInput for an empty question, for no documents, and for `k` below 1.
    """
    checked_text(question, "the question")
    require_count(k, 1, "k", "it is how many passages are found")
    documents = checked_documents(documents)
    ranking = (default_retriever(documents, progress) % k).search(question)
    by_id = {document.id: document for document in documents}
    sentences: dict[str, Document] = {}
    for id in ranking.ids:
        texts = text_sentences(by_id[id].text, "any script", paragraphs=True)
        own = [Document(f"{id}\t{number}", each, by_id[id].title) for number, each in enumerate(texts)]
        if len(own) > _MAX_COMPARED:
            best_by_words = {*(bm25(own) % _MAX_COMPARED).search(question).ids}
            own = [each for each in own if each.id in best_by_words] or own[:_MAX_COMPARED]
            problem = (
                f"{short_repr(id)} has {len(texts):,} sentences, of which {len(own)} were compared by meaning"
            )
            warnings.warn(f"{problem}: divide it into passages, as read_documents does", stacklevel=2)
        sentences |= {each.id: each for each in own}
    best: dict[str, str] = {}
    for id in default_retriever(sentences.values(), progress).search(question).ids if sentences else ():
        best.setdefault(id.rpartition("\t")[0], sentences[id].text)
    found = (
        FoundPassage(rank, hit.score, by_id[hit.id], " ".join(best.get(hit.id, by_id[hit.id].text).split()))
        for rank, hit in enumerate(ranking.hits, start=1)
    )
    return FoundPassages(ranking, tuple(found))


# The tools for a question: search over its documents, and its attachments.


@check_arguments
def search(
    documents: Iterable[Document],
    retriever: Stage | None = None,
    *,
    k: int = 5,
    name: str = "search",
    progress: SearchProgress | None = None,
) -> TextTool:
    """Create a tool that returns the k best passages for a query, whole, as lines `[n] Title: text`.

    An empty result raises ToolFailed, so that "nothing found" is not taken for a fact. Without a retriever it
    is `default_retriever`, and `progress` is as there.
    """
    require_count(k, 1, "k", "a search returns k passages")
    documents = checked_documents(documents)
    by_id = {document.id: document for document in documents}
    pipeline = (retriever or default_retriever(documents, progress, linked=k < len(documents))) % k

    def run(query: str) -> Result:
        documents_found = [by_id[id] for id in pipeline.search(query).ids if id in by_id]
        if not documents_found:
            raise ToolFailed(f"{name}: no passage fits {query!r}; try other words")
        passages = (f"[{i}] {_format_passage(d)}" for i, d in enumerate(documents_found, start=1))
        return Result("\n".join(passages), tuple(documents_found))

    description = f"Searches the documents and returns the {k} passages that fit the query best."
    takes = {"query": "what to look for: names and words that the passage would contain"}
    contents = ("\0".join((each.id, each.title, each.text)) for each in documents)
    digest = digest_of(content.encode(errors="surrogatepass") for content in contents)
    return TextTool(name, description, takes, run, finds="query", digest=digest)


def _format_passage(document: Document) -> str:
    text = " ".join(document.text.split())
    return f"{document.title}: {text}" if document.title else text


@check_arguments
def tools_for(
    documents: Sequence[Document],
    attachments: Sequence[str | Path] = (),
    *,
    passages: int = 8,
    progress: SearchProgress | None = None,
) -> list[Tool]:
    """Create the search tool if there are documents, and the attachment tool if there are files.

    A search returns at most `passages`. `progress` is that of `default_retriever`. Raises BadInput for
    missing files.
    """
    tools: list[Tool] = []
    if documents:
        tools.append(search(documents, k=min(passages, len(documents)), progress=progress))
    if attachments:
        tools.append(read_attachment(attachments))
    return tools
