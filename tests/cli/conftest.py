"""The command line in this process, a folder to work in, and a model server that answers the question."""

from __future__ import annotations

import sys

import pytest
from support.command_line import ADA, FIRST, REST, Ran, replies
from support.openai_server import openai_server

from kgot_lab.cli.app import main
from kgot_lab.llm.model_file import VARIABLE


@pytest.fixture
def kgot_lab(monkeypatch, capsys):
    """The command line, run in this process."""

    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["kgot-lab", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Ran(ended.value.code or 0, printed.out, printed.err)

    return run


@pytest.fixture
def here(monkeypatch, tmp_path):
    """A folder to work in, with documents and no model, key or cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "no-model.gguf"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "my papers").mkdir()
    (tmp_path / "my papers" / "ada.md").write_text(ADA)
    (tmp_path / "my papers" / "babbage.md").write_text("# Charles Babbage\n\nCharles Babbage designed the Analytical Engine.\n")
    return tmp_path


@pytest.fixture
def server():
    """A model server that answers the question properly."""
    with openai_server(*replies(*FIRST, *REST)) as serving:
        yield serving
