"""The plain RAG of kgot_lab: five passages of its search, one call, and the model may reply "unknown"."""

import os

from benchmarks.own_folders.run import answer
from benchmarks.rivals.adapters.protocol import serve
from kgot_lab import connect, find
from kgot_lab.documents.folder import read_documents
from kgot_lab.llm.presets import RetryPolicy
from kgot_lab.loop.events import Answered


class System:
    def __init__(self, settings):
        os.environ["KGOT_LAB_SERVER_KEY"] = settings["key"]
        patience = RetryPolicy(timeout=settings["seconds"])  # this computer is slow
        self.llm = connect(f"{settings['url']}#{settings['model']}", patience=patience)
        self.folder = settings["documents"]
        self.documents = read_documents(self.folder).documents

    def index(self, paths):
        find("everything", self.folder)  # stores the vectors
        return {"passages": len(self.documents)}

    def ask(self, question):
        events = list(answer("rag-unknown", {"id": "", "question": question}, self.documents, self.llm))
        return next(event for event in reversed(events) if isinstance(event, Answered)).text


serve(System)
