"""kgot_lab with its preset `paths`, as `kgot-lab ask QUESTION --documents FOLDER` runs it."""

import os
from pathlib import Path

from benchmarks.rivals.adapters.protocol import serve
from kgot_lab import ask, connect, find
from kgot_lab.llm.presets import RetryPolicy
from kgot_lab.loop.events import Answered


class System:
    def __init__(self, settings):
        os.environ["KGOT_LAB_SERVER_KEY"] = settings["key"]
        patience = RetryPolicy(timeout=settings["seconds"])  # this computer is slow
        self.model = connect(f"{settings['url']}#{settings['model']}", patience=patience)
        self.documents = settings["documents"]

    def index(self, paths):
        assert {str(path) for path in Path(self.documents).iterdir()} == set(paths)
        find("everything", self.documents)  # reads the files and stores the vectors
        return {}

    def ask(self, question):
        run = ask(question, self.documents, self.model, preset="paths")
        end = next(event for event in reversed(run.events) if isinstance(event, Answered))
        return {"answer": end.shown_text, "outcome": end.outcome, "remark": end.remark}


serve(System)
