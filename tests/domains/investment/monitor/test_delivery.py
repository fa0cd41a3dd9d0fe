"""Briefings leave the outbox: as files that are written over, and as posts whose key tells a receiver what it
has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler

import pytest
from support.loopback import free_port, serving

from kgot_lab.domains.investment.accounts import OutboxEntry
from kgot_lab.domains.investment.monitor.monitor import deliver_to_address, deliver_to_folder
from kgot_lab.errors import BadInput, ToolFailed

NOW = datetime(2026, 2, 5, tzinfo=UTC)
ENTRY = OutboxEntry("a1b2", "ada/../../x", {"text": "Buy. — ä", "live_until": None}, NOW, None)


@contextmanager
def receiver(status: int = 204) -> Iterator[tuple[str, list[tuple[str, dict]]]]:
    """A server that notes what is posted to it, with its key, and answers with a status."""
    posted: list[tuple[str, dict]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(
                (
                    self.headers["Idempotency-Key"],
                    json.loads(self.rfile.read(int(self.headers["Content-Length"]))),
                )
            )
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as url:
        yield url, posted


def test_a_briefing_is_a_file_named_by_its_key_and_written_over(tmp_path):
    deliver = deliver_to_folder(tmp_path / "out")
    deliver(ENTRY)
    deliver(ENTRY)
    (path,) = (tmp_path / "out").iterdir()
    assert path.name == "a1b2.json" and json.loads(path.read_text()) == {**ENTRY.body, "user": ENTRY.user}
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(BadInput, match="cannot write the briefing"):
        deliver_to_folder(tmp_path / "out")(ENTRY)


def test_a_briefing_is_posted_with_its_key():
    with receiver() as (url, posted):
        deliver_to_address(f"{url}/briefings")(ENTRY)
    assert posted == [("a1b2", {**ENTRY.body, "user": ENTRY.user})]


@pytest.mark.parametrize(("status", "again"), [(503, True), (429, True), (404, False), (302, False)])
def test_a_receiver_that_does_not_take_it_is_told_with_whether_it_may_later(status, again):
    with receiver(status) as (url, _), pytest.raises(ToolFailed, match=str(status)) as failed:
        deliver_to_address(url)(ENTRY)
    assert failed.value.again == again and "ada" not in str(failed.value)


def test_a_receiver_that_is_not_there_is_told_without_a_password():
    with pytest.raises(ToolFailed, match="see that it is there") as failed:
        deliver_to_address(f"http://ada:secret@127.0.0.1:{free_port()}/")(ENTRY)
    assert failed.value.again and "secret" not in str(failed.value)


@pytest.mark.parametrize("url", ["http://example.org/in", "ftp://127.0.0.1/", "briefings", "http://"])
def test_an_address_that_is_not_safe_is_refused_before_anything_is_sent(url):
    with pytest.raises(BadInput):
        deliver_to_address(url)
