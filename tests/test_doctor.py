"""The doctor: every piece is tried for real, and what is missing is said with the way to get it."""

from __future__ import annotations

import sys

import pytest

from kgot_lab import doctor
from kgot_lab.cli import main
from kgot_lab.doctor import PIECES, Finding, examine
from kgot_lab.errors import ModelMissing, NoSandbox, NotInstalled
from kgot_lab.llm.model_file import VARIABLE, find_model


def no_sandbox() -> str:
    raise NoSandbox("no sandbox works: apt install bubblewrap")


def no_extra() -> str:
    raise NotInstalled("documents", "markitdown")


def broken() -> str:
    raise ImportError("libgomp.so.1: cannot open shared object file")


def fine() -> str:
    return "works"


def run(monkeypatch, pieces):
    monkeypatch.setattr(doctor, "PIECES", pieces)
    monkeypatch.setattr(sys, "argv", ["kgot-lab", "doctor"])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_each_piece_is_tried_for_real(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "no.gguf"))  # the model is tried by the tests marked live
    findings = {finding.piece: finding for finding in examine()}
    assert list(findings) == [piece for piece, _, _ in PIECES]
    assert all(finding.works for finding in findings.values() if finding.needed), findings
    assert "100 questions and 994 passages" in findings["bundled data"].said
    assert "Ada Lovelace born in London" in findings["in-memory store"].said
    assert not findings["local model"].works and "no.gguf" in findings["local model"].said


@pytest.mark.live
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the engine leaves /dev/null open
def test_the_local_model_is_tried_for_real():
    pytest.importorskip("llama_cpp", reason="no engine for the local model here")
    try:
        find_model()
    except ModelMissing as error:
        pytest.skip(f"no local model here: {error}")
    finding = next(examine([piece for piece in PIECES if piece[0] == "local model"]))
    assert finding.works and "tokens a second" in finding.said


def test_a_missing_needed_piece_is_said_with_the_way_to_get_it_and_is_a_failure(monkeypatch, capsys):
    assert run(monkeypatch, (("sandbox", no_sandbox, True), ("data", fine, True))) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("MISSING") and "apt install bubblewrap" in out[0] and out[1].startswith("ok")


def test_a_missing_piece_that_is_not_needed_is_no_failure(monkeypatch, capsys):
    assert run(monkeypatch, (("documents", no_extra, False),)) == 0
    out = capsys.readouterr().out
    assert out.startswith("missing") and "pip install 'kgot_lab[documents]'" in out


def test_a_piece_that_is_broken_is_named_and_the_others_are_still_tried():
    found = list(examine((("embeddings", broken, False), ("data", fine, True))))
    assert not found[0].works and "libgomp" in found[0].said and "install it again" in found[0].said
    assert found[1] == Finding("data", True, "works", True)
