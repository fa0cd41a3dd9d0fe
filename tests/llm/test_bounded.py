"""The client of servers: what is late breaks nothing else, and no body costs more time than it has bytes."""

import json
import socket
import threading
import time
import zlib
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai
import pytest
from support.loopback import QuietHandler

from kgot_lab.io.http_client import (
    UnusableBody,
    body_lines,
    bounded_client,
    client_library,
    require_few_containers,
    unpacked_body,
)


class _Waits(QuietHandler, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = threading.Semaphore(0)
    let = threading.Event()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body["waits"]:
            self.asked.release()
            if body["waits"] == "trickling":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: ")
                with suppress(OSError):  # nobody listens any more
                    while not self.let.wait(0.05):
                        self.wfile.write(b"b")
            self.let.wait(30)
        self.respond(200, b"{}", {"content-type": "application/json", "content-length": "2"})


@pytest.mark.extended
@pytest.mark.parametrize("way", ["silent", "trickling"])
def test_a_server_that_does_not_answer_one_request_in_time_breaks_no_other(way):
    _Waits.let.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Waits)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/v1"
    with openai.OpenAI(
        api_key="k", base_url=address, max_retries=0, http_client=bounded_client(30, trust_env=False)
    ) as client:
        # a connection that is used again, which tells nobody
        client.post("/x", body={"waits": ""}, cast_to=object)
        answers, short = list[object](), client.with_options(timeout=1.0)
        late = threading.Thread(target=lambda: answers.append(_error(short, way)))
        late.start()
        assert _Waits.asked.acquire(timeout=30)
        other = threading.Thread(
            target=lambda: answers.append(client.post("/x", body={"waits": "silent"}, cast_to=object))
        )
        other.start()
        assert _Waits.asked.acquire(timeout=30)
        late.join(30)
        time.sleep(0.3)
        _Waits.let.set()
        other.join(30)
    server.shutdown()
    server.server_close()
    assert answers == [openai.APITimeoutError, {}]


def _error(client, way):
    with pytest.raises(openai.OpenAIError) as caught:
        client.post("/x", body={"waits": way}, cast_to=object)
    return caught.type


def test_where_there_was_no_connection_nothing_can_have_been_charged():
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes a connection, and agrees on no TLS
        address = f"https://127.0.0.1:{silent.getsockname()[1]}/v1"
        with openai.OpenAI(
            api_key="k", base_url=address, max_retries=0, http_client=bounded_client(0.2, trust_env=False)
        ) as client:
            for _ in range(5):
                with pytest.raises(openai.APITimeoutError) as caught:
                    client.with_options(timeout=0.2).post("/x", body={}, cast_to=object)
                assert type(caught.value.__cause__).__name__ == "ConnectTimeout"


@pytest.mark.parametrize("end", [b"", b"\\", b'x"'])
def test_a_text_without_an_end_is_looked_at_once(end):
    body = b"[" * 100_001 + b'"' + b'\\"' * 1_000_000 + end  # its time was the square of the quotes
    began = time.process_time()
    with pytest.raises(UnusableBody, match="objects and lists"):
        require_few_containers(body)
    assert time.process_time() - began < 20


def _unpacked(chunks, packing, max_bytes):
    response = client_library().Response(200, headers={"content-encoding": packing}, content=chunks)
    return unpacked_body(response, max_bytes)


def test_a_stream_passes_on_each_piece_as_it_comes_packed_or_not():
    pack = zlib.compressobj(wbits=31)
    packed = [pack.compress(word) + pack.flush(zlib.Z_SYNC_FLUSH) for word in (b"once", b" upon")]
    came = list[bytes]()
    pieces = _unpacked((came.append(chunk) or chunk for chunk in [*packed, pack.flush()]), "gzip", 100)
    assert [(next(pieces), len(came)) for _ in packed] == [(b"once", 1), (b" upon", 2)]
    assert b"".join(pieces) == b"" and len(came) == 3
    assert list(_unpacked(iter([b"a", b"b"]), "", 2)) == [b"a", b"b"]


def test_a_stream_that_is_too_long_ends_as_soon_as_it_is():
    bomb = zlib.compress(b"0" * 1_000_000)
    with pytest.raises(UnusableBody, match="larger than"):
        list(_unpacked(iter([bomb]), "deflate", 1000))
    endless = _unpacked((b"0123456789" for _ in iter(int, 1)), "", 25)
    assert [next(endless), next(endless)] == [b"0123456789"] * 2
    with pytest.raises(UnusableBody, match="larger than"):
        next(endless)


def test_lines_are_told_as_soon_as_they_end_and_a_letter_that_looks_like_an_end_is_none():
    text = "one\r\n\ntwo \u2028 \x0b\nthree".encode()
    assert list(body_lines(text[at : at + 1] for at in range(len(text)))) == [
        b"one",
        b"",
        "two \u2028 \x0b".encode(),
        b"three",
    ]
    assert next(body_lines(iter([b"one\ntw"]))) == b"one"


def test_a_line_that_holds_too_much_is_refused():
    with pytest.raises(UnusableBody, match="objects and lists"):
        list(body_lines([b"[" * 60_000, b"[" * 60_000]))
    with pytest.raises(UnusableBody, match="a line of the answer is longer"):
        list(body_lines(b" " * 1_000_000 for _ in iter(int, 1)))
