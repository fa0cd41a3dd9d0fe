"""Data sets: the bundled ones, one's own, public ones, and what published systems found in them."""

import functools
import gzip
import hashlib
import http.server
import json
import shutil
import sys
import threading
import zipfile
from collections import Counter

import pytest
from support.beir import to_beir

from benchmarks.recall.published import load_published, published
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.delta_edges import compare_pairs
from kgot_lab.analogy.linguistic import LinguisticSkeletons
from kgot_lab.analogy.skeletons import make_skeletons
from kgot_lab.benchmark.recall.datasets import BUNDLED, load_dataset
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput, NotInstalled, UnknownName
from kgot_lab.evaluation.dataset import from_beir
from kgot_lab.io.files import bundled_path
from kgot_lab.types import Document, Query

DOCUMENTS = [
    {"_id": "d1", "title": "Ada", "text": "Ada wrote.\nA lot."},
    {"_id": "d2", "text": "Łódź \ud800 tabs\t"},
    {"_id": "d3", "text": ""},
]
QUERIES = [{"_id": "q1", "text": "Who wrote?"}, {"_id": "q2", "text": "Where?"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t0\nq2\td2\t1\n"

WITH_EDGES = {
    "parallelparc": "parallelparc",
    "storyanalogy-mc": "storyanalogy-mc",
    "cookbook": "cookbook",
    "hotpotqa": "hotpotqa-train-100",
    "musique": "musique-train-100",
}


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(lines(DOCUMENTS))
    (folder / "queries.jsonl").write_text(lines(QUERIES))
    (folder / "qrels" / "test.tsv").write_text(QRELS)
    return folder


# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_a_bundled_set_fits_together(name):
    dataset = load_dataset(name)
    known = {document.id for document in dataset.documents}
    assert dataset.name == name and len(known) == len(dataset.documents)
    assert sorted(query.id for query in dataset.queries) == sorted(dataset.qrels)
    assert all(document in known for grades in dataset.qrels.values() for document in grades)
    assert dataset.test_ids <= set(dataset.qrels) and set(dataset.types) <= set(dataset.qrels)
    assert len(dataset.dev.queries) + len(dataset.test_ids) == len(dataset.queries)


@pytest.mark.extended
@pytest.mark.parametrize(("name", "passages", "questions"), [("2wiki-780", 780, 101), ("2wiki-421", 421, 51)])
def test_what_the_published_systems_searched_is_a_part_of_2wiki(name, passages, questions):
    part, whole = searched(questions), load_dataset("2wiki")
    assert part.name == name
    assert (len(part.documents), len(part.queries)) == (passages, questions)
    assert set(part.documents) <= set(whole.documents)
    assert list(part.documents) == sorted(part.documents, key=lambda document: document.id)
    assert part.test_ids == whole.test_ids & set(part.qrels)
    assert all(part.qrels[id] == whole.qrels[id] for id in part.qrels)


once_published = functools.cache(published)


@functools.cache
def searched(subset):
    return load_published({51: "2wiki-421", 101: "2wiki-780"}[subset])


@pytest.mark.parametrize(
    ("subset", "system", "two", "five", "all_gold"),
    [
        (51, "vector database", 0.593, 0.706, 0.490),
        (51, "LightRAG", 0.480, 0.642, 0.471),
        (51, "nano-graphrag", 0.632, 0.833, 0.745),
        (51, "fast-graphrag", 0.735, 0.951, 0.961),
        (101, "vector database", 0.562, 0.651, 0.416),
        (101, "LightRAG", 0.490, 0.631, 0.446),
        (101, "nano-graphrag", 0.634, 0.827, 0.733),
        (101, "fast-graphrag", 0.700, 0.923, 0.931),
    ],
)
def test_the_published_figures_come_out_of_the_published_runs(subset, system, two, five, all_gold):
    dataset, rankings = searched(subset), once_published()[subset, system]
    assert {ranking.query for ranking in rankings} == set(dataset.queries)

    def mean(measure):
        return round(sum(map(measure, rankings)) / len(rankings), 3)

    def recall(ranking, k):
        gold = set(dataset.qrels[ranking.query.id])
        return len(gold & set(ranking.ids[:k])) / len(gold)

    assert mean(lambda ranking: recall(ranking, 2)) == pytest.approx(two, abs=5e-4)
    assert mean(lambda ranking: recall(ranking, 5)) == pytest.approx(five, abs=5e-4)
    assert mean(lambda ranking: recall(ranking, 8) == 1) == all_gold


@pytest.mark.parametrize("name, folder", sorted(WITH_EDGES.items()))
def test_the_delta_edges_of_a_set_join_its_documents_and_follow_the_rule_in_their_head(name, folder):
    dataset = load_dataset(name)
    with gzip.open(bundled_path(f"{folder}/delta_edges.jsonl.gz"), "rt", encoding="utf-8") as file:
        head = json.loads(file.readline())
    pairs = [(edge.source, edge.target) for edge in dataset.isomorphic]
    assert len(set(pairs)) == len(pairs) == head["edges"] > 0 and all(one < other for one, other in pairs)
    uses = Counter(end for pair in pairs for end in pair)
    assert set(uses) <= {document.id for document in dataset.documents}
    assert max(uses.values()) <= (head["most"] or len(pairs))
    least = head["thresholds"]
    for edge in dataset.isomorphic:
        weight, skeleton = edge.properties["weight"], edge.properties["skeleton"]
        assert skeleton >= least["skeleton"] - 1e-4 and weight >= least["delta"] - 1e-4


@pytest.mark.extended
def test_delta_edges_on_file_are_those_that_the_passages_give():
    dataset = load_dataset("musique")
    texts = {document.id: document.text for document in dataset.documents}
    some = dataset.isomorphic[::300]
    made = make_skeletons(
        [texts[end] for edge in some for end in (edge.source, edge.target)], LinguisticSkeletons()
    )
    aligner = Aligner(minilm())
    for edge, pair in zip(
        some,
        compare_pairs([(texts[edge.source], texts[edge.target]) for edge in some], made, minilm()),
        strict=True,
    ):
        # in 8 bits, processors differ a little
        assert pair.skeleton == pytest.approx(edge.properties["skeleton"], abs=0.02)
        assert pair.raw == pytest.approx(edge.properties["raw"], abs=0.02)
        assert not aligner.align(texts[edge.source], texts[edge.target]).veto


# ----------------------------------------------------------------------------------------------------


def test_a_beir_folder_is_read(folder):
    dataset = from_beir(folder)
    assert repr(dataset) == "<mine/test: 2 queries, 3 documents, 2 relevant pairs>"
    assert dataset.documents[0] == Document("d1", "Ada wrote.\nA lot.", "Ada")
    assert dataset.queries[1] == Query("Where?", "q2")
    assert dataset.qrels == {"q1": {"d1": 2, "d3": 0}, "q2": {"d2": 1}}
    assert dataset.dev.queries == dataset.queries


def test_a_beir_folder_may_be_gzipped_without_a_head_and_with_a_byte_order_mark(folder):
    (folder / "corpus.jsonl.gz").write_bytes(
        gzip.compress(b"\xef\xbb\xbf" + (folder / "corpus.jsonl").read_bytes())
    )
    (folder / "corpus.jsonl").unlink()
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels.tsv").write_text("q1\td1\t1.0\r\n\r\nq2\td2\t1\r\n")
    assert from_beir(folder).qrels == {"q1": {"d1": 1}, "q2": {"d2": 1}}


def test_a_bundled_set_survives_a_round_trip(tmp_path):
    dataset = searched(51).dev
    again = from_beir(to_beir(dataset, tmp_path / "wiki", "dev"), "dev")
    expected = (dataset.documents, dataset.queries, dataset.qrels)
    assert (again.documents, again.queries, again.qrels) == expected


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("corpus.jsonl", b"", "there are no documents"),
        (
            "corpus.jsonl",
            b'{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}\n',
            "1 ids of documents occur more than once.*'d1'",
        ),
        ("corpus.jsonl", b'{"_id": "d1", "text": "x"}\n{"_id": ', "corpus.jsonl, line 2: not JSON"),
        ("corpus.jsonl", b"[" * 100_000, "corpus.jsonl, line 1: not JSON"),
        ("corpus.jsonl", b'["d1"]\n', "line 1: .* is not a JSON object"),
        ("corpus.jsonl", b'{"_id": "d1"}\n', "line 1: no column 'text'.*there are _id"),
        ("corpus.jsonl", b'{"_id": "d1", "text": null}\n', "line 1: text is None"),
        ("corpus.jsonl", b'{"_id": "d1", "text": NaN}\n', "line 1: text is nan"),
        ("corpus.jsonl", b'{"_id": 1.5, "text": "x"}\n', "line 1: _id is 1.5"),
        ("corpus.jsonl", b'{"_id": "d1", "text": "caf\xe9"}\n', "corpus.jsonl, line 1: not UTF-8"),
        ("queries.jsonl", lines([QUERIES[0]] * 2).encode(), "ids of queries occur more than once"),
        ("queries.jsonl", b"\n \n", "there are no queries"),
        (
            "queries.jsonl",
            b'{"_id": "q1", "text": "who?"}\n{"_id": "q2", "text": "?? !"}\n',
            "1 query without a letter or digit, for example 'q2'",
        ),
        ("qrels/test.tsv", b"q1 d1 1\n", "test.tsv, line 1: 1 columns; three are expected"),
        ("qrels/test.tsv", b"q1\td1\t0.5\n", "test.tsv, line 1: grade is '0.5'"),
        ("qrels/test.tsv", b"q1\td1\t1e30\n", "grade is .1e30.; a grade is a whole number up to 1,000,000"),
        ("qrels/test.tsv", b"q1\td1\t1\nq2\td2\tyes\n", "test.tsv, line 2: grade is 'yes'"),
        ("qrels/test.tsv", b"q1\td1\t1\nq1\td1\t2\n", "line 2: .*another grade before"),
        (
            "qrels/test.tsv",
            b"q1\td1\t1\nq1\td9\t1\nq8\td1\t1\n",
            r"2 judgements of an unknown .*line 2\) of document 'd9'.*missing='drop'",
        ),
        ("qrels/test.tsv", b"q1\td1\t0\n", "no query of mine/test has a relevant document"),
        ("qrels/test.tsv", b"", "no query of mine/test has a relevant document"),
    ],
)
def test_bad_files_are_named_with_the_line(folder, file, content, message):
    (folder / file).write_bytes(content)
    with pytest.raises(BadInput, match=message):
        from_beir(folder)


@pytest.mark.parametrize("split", ["../test", "/etc/passwd", "..", "", "a/b", "test\n"])
def test_a_split_cannot_leave_the_folder(folder, split):
    with pytest.raises(BadInput, match="is not the name of a file"):
        from_beir(folder, split)


def test_what_is_left_out_is_counted(folder):
    (folder / "qrels" / "test.tsv").write_text("q1\td1\t1\nq1\td9\t1\nq2\td2\t-1\n")
    dataset = from_beir(folder, missing="drop")
    assert dataset.qrels == {"q1": {"d1": 1}} and [query.id for query in dataset.queries] == ["q1"]
    assert "1 judgements of an unknown document" in dataset.notes[0]
    assert "1 query without a relevant document" in dataset.notes[1]
    assert "1 query without" in repr(dataset)


# ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def irds(tmp_path_factory):
    """An ir_datasets whose files are in a folder of their own and which reaches no network."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.split(".")[0] == "ir_datasets"]:
            patch.delitem(sys.modules, name)
        patch.setenv("IR_DATASETS_HOME", str(tmp_path_factory.mktemp("irds")))
        patch.setenv("IR_DATASETS_DL_TRIES", "1")
        patch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield pytest.importorskip("ir_datasets")
        for name in [name for name in sys.modules if name.split(".")[0] == "ir_datasets"]:
            del sys.modules[name]


@pytest.fixture
def home(irds):
    """Where ir_datasets keeps the files of the set beir/tiny; empty before each test."""
    folder = irds.util.home_path() / "beir" / "tiny"
    shutil.rmtree(folder, ignore_errors=True)
    irds.registry._registered.pop("beir/tiny/test", None)
    return folder


@pytest.fixture
def archive(tmp_path):
    """A small set, packed as BEIR packs them."""
    path = tmp_path / "tiny.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tiny/corpus.jsonl", lines([DOCUMENTS[0], {"_id": "d2", "title": "", "text": "x"}]))
        file.writestr("tiny/queries.jsonl", lines(QUERIES))
        file.writestr("tiny/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td404\t1\n")
    return path.read_bytes()


def register(irds, url, md5):
    """Tell ir_datasets of the set beir/tiny/test, which is at some address."""
    from ir_datasets.datasets import beir

    util = irds.util
    util.DownloadConfig.contents()["beir"]["tiny"] = {
        "url": url,
        "expected_md5": md5,
        "cache_path": "tiny/source.zip",
        "size_hint": 1,
    }
    home = util.home_path() / "beir"
    files = util.DownloadConfig.context("beir", home)["tiny"]
    inside = util.ZipExtract
    irds.registry.register(
        "beir/tiny/test",
        irds.Dataset(
            beir.BeirDocs("tiny", inside(files, "tiny/corpus.jsonl"), beir.BeirTitleDoc),
            beir.BeirQueries(
                "tiny",
                util.Cache(inside(files, "tiny/queries.jsonl"), home / "tiny" / "q.json"),
                beir.GenericQuery,
            ),
            beir.BeirQrels(
                util.Cache(inside(files, "tiny/qrels/test.tsv"), home / "tiny" / "test.qrels"), qrels_defs={}
            ),
        ),
    )


@pytest.fixture
def serve():
    """Serve some bytes at an address on this computer."""
    servers = []

    def served(content):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        servers.append(http.server.HTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/tiny.zip"

    yield served
    for server in servers:
        server.shutdown()
        server.server_close()


def md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def test_a_public_set_is_fetched(irds, home, archive, serve):
    register(irds, serve(archive), md5(archive))
    dataset = load_dataset("beir/tiny")
    assert dataset.name == "beir/tiny/test"
    assert dataset.documents[0] == Document("d1", "Ada wrote.\nA lot.", "Ada")
    assert dataset.qrels == {"q1": {"d1": 1}} and dataset.queries == (Query("Who wrote?", "q1"),)
    assert "1 judgements of an unknown document" in dataset.notes[0]
    assert "1 query without" in dataset.notes[1]


def test_without_a_network_the_message_says_what_to_do_and_a_file_put_there_works(irds, home, archive):
    register(irds, "http://127.0.0.1:9/tiny.zip", md5(archive))
    source = home / "source.zip"
    with pytest.raises(BadInput) as caught:
        load_dataset("beir/tiny")
    for part in ("cannot be fetched", f"delete {home.parent}", "from_beir(folder)"):
        assert part in str(caught.value)
    source.write_bytes(archive)
    assert len(load_dataset("beir/tiny").documents) == 2


def test_a_corrupt_download_is_not_kept_and_a_later_one_works(irds, home, archive, serve):
    register(irds, serve(archive[:-9]), md5(archive))
    with pytest.raises(BadInput, match="HashVerificationError"):
        load_dataset("beir/tiny")
    source = home / "source.zip"
    assert not source.exists()
    source.write_bytes(archive)
    assert len(load_dataset("beir/tiny").documents) == 2


@pytest.mark.parametrize("installed", [True, False])
def test_an_unknown_name_lists_the_bundled_sets_and_hints_at_beir(irds, monkeypatch, installed):
    if not installed:
        monkeypatch.setitem(sys.modules, "ir_datasets", None)
    message = r"did you mean 'musique'\? Known: .*2wiki-1000.*beir/scifact, or another"
    with pytest.raises(UnknownName, match=message):
        load_dataset("musiqe")


def test_without_the_package_a_public_set_says_what_to_install(irds, monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(NotInstalled, match=r"ir_datasets.*kgot_lab\[bench\]"):
        load_dataset("beir/scifact")


def test_a_corrupt_file_that_is_there_is_named(irds, home, archive):
    register(irds, "http://127.0.0.1:9/tiny.zip", md5(archive))
    source = home / "source.zip"
    source.parent.mkdir(parents=True)
    source.write_bytes(archive[:-9])
    with pytest.raises(BadInput, match=rf"beir/tiny/test cannot be fetched or read .*: delete {home.parent}"):
        load_dataset("beir/tiny/test")


def test_a_gzip_file_cut_short_is_named(folder):
    whole = gzip.compress((folder / "corpus.jsonl").read_bytes() * 50)
    (folder / "corpus.jsonl").unlink()
    for broken in (whole[:-20], b"not gzip", whole[:20] + b"\xff" * 20 + whole[40:]):
        (folder / "corpus.jsonl.gz").write_bytes(broken)
        with pytest.raises(BadInput, match=r"corpus\.jsonl\.gz"):
            from_beir(folder)


def test_a_public_set_without_judgements_names_those_that_have_some(irds):
    with pytest.raises(BadInput, match=r"beir has no judgements.*beir/scifact/test"):
        load_dataset("beir")


def test_a_published_ranking_names_passages_of_its_set_and_no_id_twice():
    elsewhere = 0
    for (subset, _), rankings in once_published().items():
        known = {document.id for document in searched(subset).documents}
        for ranking in rankings:
            assert len(set(ranking.ids)) == len(ranking.ids) <= 8
            elsewhere += sum(id not in known and " title at rank " not in id for id in ranking.ids)
            expected = sorted((hit.score for hit in ranking.hits), reverse=True)
            assert [hit.score for hit in ranking.hits] == expected
    # LightRAG, three times the same title: it is in 2wiki, but not among the passages LightRAG searched
    assert elsewhere == 3


def test_an_absent_file_or_folder_is_named(folder):
    with pytest.raises(BadInput, match=r"no qrels/dev.tsv or qrels.tsv .*splits there are test"):
        from_beir(folder, "dev")
    with pytest.raises(BadInput, match="is not a folder"):
        from_beir(folder / "nowhere")


def test_an_unknown_public_set_is_an_unknown_name(irds):
    with pytest.raises(UnknownName, match="did you mean 'beir/scifact'"):
        load_dataset("beir/scifac")


def test_other_names_of_columns_do_too(folder):
    (folder / "queries.jsonl").write_text(lines([{"qid": 1, "query": "who?"}]))
    (folder / "corpus.jsonl").write_text(lines([{"docno": "d1", "contents": "one"}]))
    (folder / "qrels" / "test.tsv").write_text("1\td1\t1\n")
    dataset = from_beir(folder)
    assert dataset.queries == (Query("who?", "1"),) and dataset.documents == (Document("d1", "one"),)


def test_what_becomes_of_judgements_of_nothing_is_one_of_two(folder):
    with pytest.raises(BadInput, match="unknown way with missing"):
        from_beir(folder, missing="ignore")
