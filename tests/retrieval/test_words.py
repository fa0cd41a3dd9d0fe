import gc
import math
import re
import sqlite3
import threading
import unicodedata
import warnings

import pytest
from support.every import every

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.errors import BadInput
from kgot_lab.retrieval import lexical
from kgot_lab.retrieval.lexical import INTENT_VERBS, bm25, fts5, like
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.analysis import analyzer
from kgot_lab.text.words import SEARCH_STOP_WORDS, UNSPACED, normalise_nfc, searched_words
from kgot_lab.types import Document, full_text, main_text, ranked

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="IProgress not found")
    import bm25s
    from bm25s.stopwords import STOPWORDS_EN

TEXTS = {
    "build": "Build an agent from parts; deploy it later.",
    "cache": "Prompt caching halves the costs of a long context.",
    "cost": "To reduce the cost, reduce the length.",
    "tax": "A tax of 100% is owed on snake_case names.",
}
DOCUMENTS = [Document(id, text) for id, text in TEXTS.items()]
RETRIEVERS = [bm25, like, fts5]


def in_latin_letters(documents):
    """The documents without scripts that have no spaces or need combining marks, which bm25s and SQLite split elsewhere."""

    def is_split_alike(text):
        return not UNSPACED.search(text) and all(
            unicodedata.category(c)[0] != "M" for c in normalise_nfc(text)
        )

    return [document for document in documents if is_split_alike(full_text(document))]


@pytest.fixture(scope="module")
def twowiki():
    return load_dataset("2wiki")


def scores(stage: Stage, query: str) -> dict[str, float]:
    return dict(stage.search(query).hits)


# --- what holds for every retriever of words ---


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_a_word_finds_the_document_that_holds_it(retriever):
    assert retriever(DOCUMENTS).search("Where is the AGENT?").ids == ["build"]
    assert repr(retriever(DOCUMENTS) % 3) == f"<{retriever.__name__} % 3>"


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_accents_may_be_signs_of_their_own_in_the_query_or_the_document(retriever):
    as_one, as_two = (unicodedata.normalize(form, "Café Señor") for form in ("NFC", "NFD"))
    assert as_one != as_two
    for written in (as_one, as_two):
        documents = [Document("there", f"The {written} opened."), Document("other", "The cafe of a senator.")]
        hits = {query: retriever(documents).search(query).hits for query in (as_one, as_two)}
        assert hits[as_one] == hits[as_two] and hits[as_one][0].id == "there"


@every("retriever", RETRIEVERS)
@every(
    "query",
    ["", "  ", "the of and", "zzzz", "?!", '"', "a* OR (b", "NEAR(", "%", "_", "\0", "\ud800", "x" * 100_000],
)
def test_a_query_without_a_known_word_finds_nothing(retriever, query):
    assert retriever(DOCUMENTS).search(query).hits == ()


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_signs_of_a_query_language_are_words_or_nothing(retriever):
    stage = retriever(DOCUMENTS)
    for query in (
        'agent AND NOT "',
        "agent*",
        "^agent",
        "zzz:agent",
        "agent -build'",
        "(agent",
        "%agent%",
        "agent\0zebra",
        "agent\ud800zebra",
    ):
        assert stage.search(query).ids == ["build"], query


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_equal_scores_come_in_the_order_of_the_ids(retriever):
    twins = [Document(id, "the same text") for id in ("m", "z", "a")] + [Document("other", "nothing")]
    assert retriever(twins).search("same text").ids == ["a", "m", "z"]


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_a_title_is_searched_too(retriever):
    found = retriever([*DOCUMENTS, Document("t", "No such word.", title="Zanzibar")]).search("zanzibar").ids
    assert found == ["t"]


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_odd_texts_do_no_harm(retriever):
    odd = {"control": "left\x01right", "empty": "", "accent": "ÉCOLE Straße"}
    stage = retriever([Document(id, text) for id, text in odd.items()])
    assert [stage.search(word).ids for word in ("right", "école")] == [["control"], ["accent"]]
    assert retriever([Document("only", "")]).search("anything").hits == ()


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_a_query_of_ten_thousand_words_is_answered(retriever):
    found = set(
        retriever(DOCUMENTS).search("agent tax " + " ".join(f"unknown{n}" for n in range(10_000))).ids
    )
    assert found == {"build", "tax"}


# --- BM25 ---


def test_words_are_those_of_bm25s():
    assert frozenset(STOPWORDS_EN) == SEARCH_STOP_WORDS
    texts = [
        *TEXTS.values(),
        "Ünïcödé 🙂 it's a b c",
        "",
        *(query.text for query in load_dataset("hotpotqa").dev.queries),
    ]
    assert [searched_words(text) for text in texts] == [
        bm25s.tokenize([text], stopwords="english", return_ids=False, show_progress=False)[0]
        for text in texts
    ]


@pytest.mark.parametrize(
    "name", ["hotpotqa", *(pytest.param(name, marks=pytest.mark.extended) for name in ("musique", "2wiki"))]
)
def test_bm25_equals_bm25s_ranking_for_ranking(name):
    data = load_dataset(name).dev
    documents = in_latin_letters(data.documents)
    ids = [document.id for document in documents]
    index = bm25s.BM25(k1=1.2, b=0.75, method="lucene", backend="numpy")
    texts = bm25s.tokenize([full_text(d) for d in documents], stopwords="english", show_progress=False)
    index.index(texts, show_progress=False)
    queries = data.queries[::4]
    asked = bm25s.tokenize([query.text for query in queries], stopwords="english", show_progress=False)
    rows, values = index.retrieve(asked, k=len(ids), show_progress=False)
    ours = bm25(documents)
    for query, row, value in zip(queries, rows.tolist(), values.tolist(), strict=True):
        theirs = ranked(query, {ids[at]: score for at, score in zip(row, value, strict=True) if score > 0})
        assert ours.search(query).hits == theirs.hits
    assert len(queries) > 12


@pytest.mark.parametrize("retriever", RETRIEVERS)
@pytest.mark.parametrize(
    "texts, query",
    [
        ("琵琶湖は滋賀県にある湖である。|富士山は山である。|東京タワーの高さ", "日本最大の湖"),
        ("한강은 강이다.|제주도는 섬이다.", "강은 어디인가"),
        ("ทะเลสาบสงขลาอยู่ในภาคใต้|ดอยอินทนนท์สูงที่สุด", "สงขลาอยู่ที่ไหน"),
        ("बैकाल झील रूस में है।|एवरेस्ट नेपाल में है।", "बैकाल कहाँ"),
        ("深圳有ＡＢＣ公司|北京没有", "abc"),
    ],
)
def test_a_script_without_spaces_or_with_combining_marks_is_searched(retriever, texts, query):
    assert (
        retriever(Document(str(at), text) for at, text in enumerate(texts.split("|"))).search(query).ids[0]
        == "0"
    )


GERMAN = "Der Rat der Stadt hat über die Häuser und Straßen entschieden, die nicht mehr zu bewohnen sind."


def test_words_are_stemmed_by_the_language_of_the_collection_and_the_name_says_so():
    german = bm25(
        [Document("a", GERMAN), Document("b", "Die Schiffe sind im Hafen und werden nicht fahren.")]
    )
    assert german.name == "bm25(german stems)"
    assert german.search("Welches Haus? Welches Schiff?").ids == ["b", "a"] or german.search("Haus").ids == [
        "a"
    ]
    assert bm25(DOCUMENTS).name == "bm25" and bm25(DOCUMENTS).search("costing").ids == []


@pytest.mark.parametrize(
    "text, languages",
    [
        (GERMAN, ("de",)),
        ("The council of the town has decided.", ("en",)),
        ("Ada Lovelace; Alan Turing", ("en",)),
        ("Он был в городе и не знал, что она там.", ("ru",)),
        ("Το λιμάνι είναι στην πόλη.", ("el",)),
        ("琵琶湖は滋賀県にある湖である。", ("ja",)),
        ("北京是中国的首都。", ("zh",)),
        ("هذا هو البيت الذي بناه.", ("ar",)),
        ("این خانه‌ای است که او ساخت و می‌خواهد.", ("fa",)),
        ("Consiliul a hotărât că este pentru toți și nu doar pentru un oraș.", ("ro",)),
        ("Người dân đã đến thành phố và không có gì cho họ.", ("vi",)),
        ("Müll rausbringen Mittwoch. Schlüssel hängt hinterm Schrank.", ("latin",)),
        ("Kedi suyu sever. Ödül alan yazar Nobel kazandı ve İstanbul'da doğdu.", ("tr",)),
        ("Müller met José in Zürich, and they had lunch with the others.", ("en",)),
        ("", ("en",)),
    ],
)
def test_the_languages_of_a_collection_are_told_by_script_and_function_words(text, languages):
    assert analyzer([text]).languages == languages


def test_half_of_another_script_is_not_english_and_titles_do_not_decide():
    russian = [
        Document(f"{n}", "Он был в городе и не знал, что она там.", "a long English file name") for n in "ab"
    ]
    english = [Document(f"{n}", "He was in the town and did not know.") for n in "cd"]
    assert not analyzer(main_text(each) for each in [*russian, *english]).is_english
    assert analyzer(main_text(each) for each in [*english, *english, *english, russian[0]]).is_english
    assert bm25(russian).name == "bm25(russian stems)"


@pytest.mark.parametrize(
    ("text", "query"), [("IŞIKLAR köyü ve göl", "ışıklar"), ("चाँद और मुमताज़", "चांद मुमताज")]
)
def test_letters_that_people_type_in_several_ways_are_one(text, query):
    assert bm25([Document("a", text), Document("b", "x y")]).search(query).ids == ["a"]


def test_emphasis_multiplies_what_a_word_contributes():
    plain, heavy = bm25(DOCUMENTS), bm25(DOCUMENTS, emphasis={"Reduce": 5})
    reduce, cost = scores(plain, "reduce")["cost"], scores(plain, "cost")["cost"]
    assert scores(heavy, "reduce cost")["cost"] == pytest.approx(5 * reduce + cost, rel=1e-6)
    assert scores(heavy, "reduced costs") == scores(plain, "reduced costs")
    assert scores(bm25(DOCUMENTS, emphasis={"reduce": 0}), "reduce") == {}


def test_bm25_prints_what_it_was_told():
    assert repr(bm25(DOCUMENTS, k1=1.5, emphasis=INTENT_VERBS)) == "<bm25(k1=1.5, emphasis on 8 words)>"


@every(
    "emphasis",
    [{"reduce": -1}, {"reduce": math.nan}, {"reduce": math.inf}, {"reduce costs": 5}, {"the": 5}, {"": 5}],
)
def test_an_emphasis_that_makes_no_sense_is_refused(emphasis):
    with pytest.raises(BadInput, match="emphasis"):
        bm25(DOCUMENTS, emphasis=emphasis)


@pytest.mark.parametrize("options", [{"k1": -1}, {"k1": math.nan}, {"b": 1.1}, {"b": math.nan}])
def test_bm25_refuses_parameters_outside_their_range(options):
    with pytest.raises(BadInput, match=r"the (k1|b) of bm25\(\)"):
        bm25(DOCUMENTS, **options)


# --- LIKE ---


def test_like_counts_the_words_of_the_query_that_a_document_holds_anywhere():
    assert scores(like(DOCUMENTS), "cost cost length") == {"cost": 2, "cache": 1}
    assert scores(like(DOCUMENTS), "oste") == {}
    assert scores(like(DOCUMENTS), "ax") == {"tax": 1}


def test_like_takes_percent_and_underscore_for_themselves():
    documents = [*DOCUMENTS, Document("plain", "snakeXcase and 1000")]
    assert like(documents).search("snake_case").ids == ["tax"]
    assert like(documents).search("e_c").ids == ["tax"]


def plainly_like(documents, query: str) -> dict[str, float]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE passages (id TEXT, title TEXT, text TEXT)")
    rows = [(document.id, document.title.lower(), document.text.lower()) for document in documents]
    connection.executemany("INSERT INTO passages VALUES (?, ?, ?)", rows)
    counts: dict[str, float] = {}
    for term in set(searched_words(query)):
        pattern = f"%{term.replace('_', chr(92) + '_')}%"
        statement = r"SELECT id FROM passages WHERE title LIKE ? ESCAPE '\' OR text LIKE ? ESCAPE '\'"
        for (id,) in connection.execute(statement, (pattern, pattern)):
            counts[id] = counts.get(id, 0) + 1
    connection.close()
    return counts


def test_like_over_the_vocabulary_equals_like_over_the_texts(twowiki):
    documents = twowiki.documents[:600]
    stage = like(documents)
    for query in twowiki.dev.queries[::20]:
        assert stage.search(query).hits == ranked(query, plainly_like(documents, query.text)).hits


# --- FTS5 ---


def test_fts5_finds_a_word_by_its_stem():
    assert fts5(DOCUMENTS).search("cache").ids == ["cache"]
    assert set(fts5(DOCUMENTS).search("costing").ids) == {"cost", "cache"}


def test_fts5_scores_are_sqlites_own_negated(twowiki):
    documents, query = in_latin_letters(twowiki.documents[:500]), "Who directed the film?"
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61')")
    connection.executemany("INSERT INTO t VALUES (?)", [(full_text(document),) for document in documents])
    found = connection.execute(
        "SELECT rowid, bm25(t) FROM t WHERE t MATCH 'who OR directed OR film'"
    ).fetchall()
    connection.close()
    expected = {documents[row - 1].id: -score for row, score in found}
    assert scores(fts5(documents), query) == pytest.approx(expected, rel=1e-9)
    assert len(expected) > 50 and min(expected.values()) > 0


def test_fts5_agrees_with_its_formula_written_out():
    # stop words count, snake_case is two words
    lengths = {id: len(re.findall("[^\\W_]+", text)) for id, text in TEXTS.items()}
    frequency, idf = 2, math.log((4 - 1 + 0.5) / (1 + 0.5))
    saturation = frequency + 1.2 * (1 - 0.75 + 0.75 * lengths["cost"] / (sum(lengths.values()) / 4))
    expected = pytest.approx({"cost": idf * frequency * (1.2 + 1) / saturation})
    assert scores(fts5(DOCUMENTS), "reduce") == expected


def test_fts5_says_so_where_sqlite_has_none(monkeypatch):
    without_fts5(monkeypatch)
    with pytest.raises(BadInput, match=r"SQLite 3.*no FTS5.*bm25\(\)"):
        fts5(DOCUMENTS)


def without_fts5(monkeypatch) -> None:
    class Old(sqlite3.Connection):
        def execute(self, statement, *values):
            if "fts5" in statement:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(statement, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(
        lexical.sqlite3, "connect", lambda *where, **options: connect(*where, factory=Old, **options)
    )


def test_the_database_of_a_forgotten_retriever_is_closed(monkeypatch):
    closed = []

    class Counting(sqlite3.Connection):
        def close(self):
            closed.append(self)
            super().close()

    connect = sqlite3.connect
    monkeypatch.setattr(
        lexical.sqlite3, "connect", lambda *where, **options: connect(*where, factory=Counting, **options)
    )
    stage = fts5(DOCUMENTS) % 3
    assert stage.search("agent").ids == ["build"] and closed == []
    del stage
    gc.collect()
    assert len(closed) == 1


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_several_threads_may_search_with_several_stages(retriever):
    stages, wrong = [retriever(DOCUMENTS), retriever(DOCUMENTS[:1])], []

    def work() -> None:
        try:
            found = [stage.search("agent").ids for _ in range(50) for stage in stages]
            wrong.extend(ids for ids in found if ids != ["build"])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_verb_of_an_intent_outweighs_its_subject():
    documents = [
        Document("subject", "api costs api"),
        Document("verb", "reduce what is paid"),
        Document("rest", "nothing"),
    ]
    assert bm25(documents).search("reduce api costs").ids == ["subject", "verb"]
    assert bm25(documents, emphasis=INTENT_VERBS).search("reduce api costs").ids == ["verb", "subject"]
    assert len(INTENT_VERBS) == 8 and set(INTENT_VERBS.values()) == {5.0}
