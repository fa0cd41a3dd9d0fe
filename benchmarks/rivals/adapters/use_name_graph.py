"""LinearRAG and SPRIG, each after its paper, read by the same model and prompt as the plain RAG here."""

import os

from benchmarks.own_folders.run import _rag_prompt
from benchmarks.rivals.adapters.protocol import serve
from benchmarks.rivals.name_graphs import LinearRAG, Sprig
from kgot_lab import connect
from kgot_lab.documents.folder import read_documents
from kgot_lab.embedding.vectors import minilm
from kgot_lab.llm.presets import RetryPolicy
from kgot_lab.loop.modes.paths.reading import parse_answer
from kgot_lab.tools.tool import Result


class System:
    def __init__(self, settings):
        os.environ["KGOT_LAB_SERVER_KEY"] = settings["key"]
        patience = RetryPolicy(timeout=settings["seconds"])  # this computer is slow
        self.llm = connect(f"{settings['url']}#{settings['model']}", patience=patience)
        self.documents = read_documents(settings["documents"]).documents
        passages = [f"{document.title}. {document.text}" for document in self.documents]
        self.graph = LinearRAG(passages, minilm()) if settings["system"] == "linear-rag" else Sprig(passages)

    def index(self, paths):
        return {"entities": len(self.graph.names), "passages": len(self.documents)}

    def ask(self, question):
        found = tuple(self.documents[number] for number in self.graph.search(question, 5))
        reply = self.llm(_rag_prompt(question, Result("", found), may_abstain=True))
        return parse_answer(reply.text)


serve(System)
