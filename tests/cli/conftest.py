"""The command line in this process, a folder to work in, and a model server that answers the question."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main
from support.command_line import ADA, FIRST, REST, MadeOnce, Ran, asking, replies, run_here
from support.openai_server import openai_server

from kgot_lab.cli.app import main
from kgot_lab.llm.model_file import MODEL_VARIABLE


@pytest.fixture(scope="module", autouse=True)
def commands_made_once() -> Iterator[None]:
    """Make the tree of commands once for a module's tests: it is a fifth of a short run.

    Not for a process: tests of another folder that run in it make their own.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("get_command", "get_group"):
            patch.setattr(f"typer.main.{name}", cache(getattr(typer.main, name)))
        yield


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
    work_in(tmp_path, monkeypatch)
    return tmp_path


def work_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.chdir(folder)
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    patch.setenv(MODEL_VARIABLE, str(folder / "no-model.gguf"))
    patch.delenv("OPENAI_API_KEY", raising=False)
    (folder / "my papers").mkdir()
    (folder / "my papers" / "ada.md").write_text(ADA)
    (folder / "my papers" / "babbage.md").write_text(
        "# Charles Babbage\n\nCharles Babbage designed the Analytical Engine.\n"
    )


@pytest.fixture
def server():
    """A model server that answers the question properly."""
    with openai_server(*replies(*FIRST, *REST)) as serving:
        yield serving


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """A question answered to its end, once for all tests that only need such a run."""
    yield from made_once(tmp_path_factory.mktemp("finished"), code=0)


@pytest.fixture(scope="session")
def stopped_run(tmp_path_factory):
    """The same, stopped after three calls."""
    yield from made_once(tmp_path_factory.mktemp("stopped"), "--max-calls", 3, code=1)


def made_once(folder: Path, *more: object, code: int) -> Iterator[MadeOnce]:
    with openai_server(*replies(*FIRST, *REST)) as serving:
        with pytest.MonkeyPatch.context() as patch:
            work_in(folder, patch)
            ran = run_here(*asking(serving, "--trace", "run.jsonl", *more))
        assert ran.code == code, ran.err
        yield MadeOnce(serving, (folder / "run.jsonl").read_text(encoding="utf-8"))
