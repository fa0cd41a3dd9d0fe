"""A model server on this computer that answers by what it is asked, holds requests back when told to, and
counts what it has answered.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from kgot_lab.types import Message, Prompt
from support.loop_script import WORDS, role_of
from support.loopback import QuietHandler, serving
from support.openai_server import says

Body = dict[str, Any]


@dataclass
class AnsweringServer:
    """Its address, the requests it answered whole, and those that wait because more than `most` were made."""

    url: str
    answered: list[str] = field(default_factory=list)
    held: int = 0
    most: int | None = None
    go_on: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def hold_after(self, most: int) -> None:
        """Answer so many requests in all, and let the others wait until `release`."""
        self.go_on.clear()
        self.most, self.held = most, 0

    def release(self) -> None:
        """Answer everything from now on; those that waited are left unanswered."""
        self.most = None
        self.go_on.set()

    @property
    def repeated(self) -> list[str]:
        """The requests that were answered more than once."""
        return [body for body, count in Counter(self.answered).items() if count > 1]


def prompt_of(body: Body) -> Prompt:
    """The prompt in a request."""
    return Prompt(tuple(Message(message["role"], message["content"]) for message in body["messages"]))


@contextmanager
def answering_server(reply: Callable[[Prompt], str]) -> Iterator[AnsweringServer]:
    """Serve what `reply` says to each prompt, on a free port of the loopback; an error it raises is an HTTP
    400.
    """
    server = AnsweringServer("")

    class Handler(QuietHandler, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            body = json.loads(raw)
            self.close_connection = True
            with server.lock:
                holding = server.most is not None and len(server.answered) >= server.most
                server.held += holding
                if not holding:
                    server.answered.append(json.dumps(body, sort_keys=True))
            if holding:
                server.go_on.wait()
                return
            try:
                status, sent = 200, says(reply(prompt_of(body))).body
            except Exception as error:
                status, sent = 400, {"error": {"message": str(error), "type": "error", "code": None}}
            raw = json.dumps(sent).encode()
            headers = {"content-type": "application/json", "connection": "close"}
            headers["content-length"] = str(len(raw))
            self.respond(status, raw, headers)

    with serving(Handler) as address:
        server.url = f"{address}/v1"
        try:
            yield server
        finally:
            server.release()


BORN = {"Ada Lovelace": "London", "Marie Curie": "Warsaw"}
BORN |= {"Isaac Newton": "Woolsthorpe", "Emmy Noether": "Erlangen"}


def told_birthplaces(prompt: Prompt) -> str:
    """What a model that reads well says when it is asked where one of these people was born."""
    text = prompt.messages[-1].text
    name = next(name for name in BORN if f"Where was {name} born?" in text)
    role = role_of(prompt) if any(words in text for words in WORDS.values()) else "guess"
    if role == "vote":
        empty = "Knowledge graph so far:\nempty" in text
        return json.dumps(
            {"choice": "INSERT", "text": "the place"}
            if empty
            else {"choice": "RETRIEVE", "text": "result = facts()"}
        )
    return {
        "merge": json.dumps({"reason": "the place"}),
        "tools": json.dumps({"calls": [{"tool": "search", "arguments": {"query": name}}]}),
        "write": json.dumps({"statements": [f'add("{name}", "born in", "{BORN[name]}")']}),
        "arithmetic?": json.dumps({"needed": False}),
        "parse": json.dumps({"answer": BORN[name]}),
        "choose": json.dumps({"number": 1}),
        "guess": json.dumps({"answer": BORN[name]}),
    }[role]


def birthplace_questions() -> list[dict[str, Any]]:
    """The lines of a question set on them, each with a document of its own."""
    return [
        {
            "id": name.split()[-1].lower(), "question": f"Where was {name} born?", "answer": place, "level": f"level {1 + number % 2}",
            "documents": [{"title": name, "text": f"{name} was born in {place}."}], "steps": 2, "tools": ["search"],
        }
        for number, (name, place) in enumerate(BORN.items())
    ]  # fmt: skip
