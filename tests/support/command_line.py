"""The command line, run in this process, in a folder with documents, against a model server that answers
properly.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from kgot_lab.cli.app import main
from support.openai_server import Answer, Server, says

QUESTION = "Where was Ada Lovelace born?"
PAPERS = ("--documents", "my papers")
ASK = ("ask", QUESTION, *PAPERS)
INSERT = {"choice": "INSERT", "text": "her place of birth"}
RETRIEVE = {"choice": "RETRIEVE", "text": "result = facts()"}
SEARCH = {"calls": [{"tool": "search", "arguments": {"query": "Ada Lovelace"}}]}
WRITE = {"statements": ['add("Ada Lovelace", "born in", "London", year=1815)']}
FIRST = [INSERT, INSERT, INSERT, SEARCH]  # what the reference preset asks before it writes
REST = [WRITE, RETRIEVE, RETRIEVE, RETRIEVE, {"needed": False}, {"answer": "London"}, {"answer": "London"}]
ADA = "# Ada Lovelace\n\nAda Lovelace was born in London in 1815.\n"


def replies(*values: object) -> list[Answer]:
    """Proper chat completions."""
    return [says(value if isinstance(value, str) else json.dumps(value)) for value in values]


class Ran(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def again(self) -> list[str]:
        """The command it says to go on with."""
        return shlex.split(re.split("Go on with[^:]*: ", self.err.strip().splitlines()[-1])[-1])


@dataclass(frozen=True)
class MadeOnce:
    """A run that several tests begin with: the server that answered it, which is still there, and its trace."""

    server: Server
    trace: str

    def put(self, name: str = "run.jsonl") -> None:
        """Lay the trace into the folder worked in."""
        Path(name).write_text(self.trace, encoding="utf-8")


def run_here(*words: object) -> Ran:
    """The command line in this process, for what is made once and so before any test reads what is printed."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        patch.setattr(sys, "argv", ["kgot-lab", *map(str, words)])
        main()
    said, told = (stream.buffer.getvalue().decode() for stream in (out, err))
    return Ran(ended.value.code or 0, said, told)


def asking(server, *more: object) -> list[object]:
    return [*ASK, "--model", f"{server.url}#m", *more]


def begun(words: list[object], **options: object) -> subprocess.Popen[str]:
    """The command line in a process of its own, under way."""
    code = [sys.executable, "-c", "from kgot_lab.cli.app import main; main()", *map(str, words)]
    return subprocess.Popen(
        code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    )
