"""`kgot-lab export` and `kgot-lab pages` as a user types them."""

import json

import pytest

from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.query.graph_loading import load_graph
from kgot_lab.stores import open_store
from kgot_lab.types import Node
from kgot_lab.viz.external_requests import find_external_requests


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("source", ["traces/hotpotqa_demo.jsonl", "kgot-snapshots/data_1.json"])
def test_a_run_or_a_snapshot_becomes_one_file_that_fetches_nothing(kgot_lab, tmp_path, source):
    code, out, _ = kgot_lab("export", bundled_path(source), "--out", "graph.html")
    text = (tmp_path / "graph.html").read_text(encoding="utf-8")
    assert code == 0 and "graph.html" in out and find_external_requests(text) == () and "<script" in text


@pytest.mark.parametrize("name", ["graph.log", "graph.sqlite"])
def test_the_file_of_a_store_is_exported_and_stays_as_it_is(kgot_lab, tmp_path, name):
    with open_store(tmp_path / name) as store:
        store.apply(store.graph().diff(PropertyGraph.of([Node("Ada Lovelace")])))
    before = (tmp_path / name).read_bytes()
    code, out, err = kgot_lab("export", name, "--out", "graph.html")
    assert code == 0, err
    assert "1 node" in out, err
    assert "Ada Lovelace" in (tmp_path / "graph.html").read_text(encoding="utf-8"), err
    assert (tmp_path / name).read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {name, "graph.html"}


def test_a_trace_that_an_editor_saved_with_a_mark_is_exported_begun_with_and_examined_as_one(
    kgot_lab, tmp_path
):
    whole = bundled_path("traces/hotpotqa_demo.jsonl")
    (tmp_path / "marked.jsonl").write_bytes("\ufeff".encode() + whole.read_bytes())
    code, out, err = kgot_lab("export", "marked.jsonl", "--out", "graph.html")
    assert code == 0 and "graph.html" in out, err
    assert load_graph("marked.jsonl") == load_graph(str(whole))
    assert kgot_lab("doctor", "marked.jsonl")[1].startswith("whole  marked.jsonl: a trace")


def test_what_is_no_graph_is_refused_and_nothing_is_written(kgot_lab, tmp_path):
    (tmp_path / "notes.csv").write_text("# notes")
    assert "there is no file nothing.json" in kgot_lab("export", "nothing.json")[2]
    assert "notes.csv, line 1: the first line names the columns" in kgot_lab("export", "notes.csv")[2]
    assert (
        "ends in .html"
        in kgot_lab("export", bundled_path("kgot-snapshots/data_1.json"), "--out", "graph.txt")[2]
    )
    assert {path.name for path in tmp_path.iterdir()} == {"notes.csv"}


def test_a_run_is_not_written_over_by_its_graph(kgot_lab, tmp_path):
    (tmp_path / "run.html").write_bytes(bundled_path("traces/hotpotqa_demo.jsonl").read_bytes())
    assert "source and out are the same file" in kgot_lab("export", "run.html", "--out", "./run.html")[2]
    assert (tmp_path / "run.html").read_bytes() == bundled_path("traces/hotpotqa_demo.jsonl").read_bytes()


def test_a_notebook_becomes_a_page(kgot_lab, tmp_path):
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# A question?"}]
    (tmp_path / "one.ipynb").write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    )
    code, out, _ = kgot_lab("pages", "one.ipynb", "--folder", "made", "--title", "Two hours")
    assert code == 0
    assert "one.html" in out
    assert "A question?" in (tmp_path / "made" / "one.html").read_text(encoding="utf-8")
    front = (tmp_path / "made" / "index.html").read_text(encoding="utf-8")
    assert "<h1>Two hours</h1>" in front
    assert '<a href="one.html">A question?</a>' in front
    assert "<script" not in front


def test_a_notebook_that_is_not_there_is_refused(kgot_lab, tmp_path):
    code, _, err = kgot_lab("pages", "nothing.ipynb")
    assert code == 1 and "nothing.ipynb" in err and not (tmp_path / "pages").exists()
