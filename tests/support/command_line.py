"""The command line, run in this process, in a folder with documents, against a model server that answers properly."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import NamedTuple

from support.openai_server import Answer, says

QUESTION = "Where was Ada Lovelace born?"
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


def asking(server, *more: object) -> list[object]:
    return ["ask", QUESTION, "--documents", "my papers", "--model", f"{server.url}#m", *more]


def begun(words: list[object], **options: object) -> subprocess.Popen[str]:
    """The command line in a process of its own, under way."""
    code = [sys.executable, "-c", "from kgot_lab.cli.app import main; main()", *map(str, words)]
    return subprocess.Popen(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options)
