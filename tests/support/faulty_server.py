"""A real server on this computer that breaks every promise a model's server makes, one at a time or several
at once.
"""

from __future__ import annotations

import gzip
import json
import random
import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from itertools import repeat

CALM = 0.05  # seconds between two bytes of a server that trickles
_LONG = 400  # bytes that trickle: far longer than anyone waits

Pieces = Iterator[bytes]


def completion(**changes: object) -> dict[str, object]:
    """A proper chat completion, with some members changed."""
    message = {"role": "assistant", "content": "Hello."}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    } | changes


def spoken(content: object, **more: object) -> dict[str, object]:
    """A chat completion whose message holds this."""
    return completion(
        choices=[
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **more},
                "finish_reason": "stop",
            }
        ]
    )


def used(**usage: object) -> dict[str, object]:
    """A chat completion that cost this."""
    return completion(usage=usage)


def _text(value: object) -> bytes:
    return json.dumps(value).encode()


BODIES: Mapping[str, bytes] = {
    "proper": _text(completion()),
    "nothing": b"",
    "a page": b"<html><body>Bad gateway</body></html>",
    "cut": _text(completion())[:60],
    "two answers": _text(completion()) * 2,
    "a stream": b"data: " + _text(completion()) + b"\n\ndata: [DONE]\n\n",
    "no UTF-8": _text(spoken("x")).replace(b'"x"', b'"\xff\xfe"'),
    "UTF-16": json.dumps(completion()).encode("utf-16"),
    "null": b"null",
    "a list": b"[1, 2]",
    "a text": b'"Hello."',
    "nested without end": b"[" * 200_000,
    "nested in a message": _text(spoken("x")).replace(b'"x"', b"[" * 50_000 + b"]" * 50_000),
    "a number of many digits": _text(used(prompt_tokens=7)).replace(b"7", b"7" * 10_000),
    "an error with 200": _text({"error": {"message": "no", "code": 5}}),
    "no choices": _text(completion(choices=[])),
    "choices of no kind": _text(completion(choices={"0": 1})),
    "a choice that is a text": _text(completion(choices=["Hello."])),
    "no message": _text(completion(choices=[{"index": 0, "message": None}])),
    "content that is a number": _text(spoken(5)),
    "content that is null": _text(spoken(None)),
    "content that is a map": _text(spoken({"text": "Hello."})),
    "parts of no kind": _text(spoken([1, None, {"type": "text", "text": 5}, {"type": "thinking"}])),
    "half a letter": _text(spoken("x")).replace(b'"x"', b'"\\ud800"'),
    "words for a terminal": _text(spoken("\x1b]0;title\x07\x1b[2J\u202e")),
    "thoughts of no kind": _text(spoken("x", reasoning_content={"a": 1}, reasoning=[1])),
    "a refusal of no kind": _text(spoken("", refusal={"a": [1]})),
    "usage below zero": _text(used(prompt_tokens=-10, completion_tokens=-5, cost=-55.0)),
    "usage that is no number": _text(used(prompt_tokens="many", completion_tokens=[], cost={})),
    "usage NaN": _text(used(prompt_tokens=7, cost=7)).replace(b"7", b"NaN"),
    "usage without end": _text(used(prompt_tokens=7, cost=7)).replace(b"7", b"1e400"),
    "usage that is a list": _text(completion(usage=[1])),
    "usage true": _text(used(prompt_tokens=True, completion_tokens=True, cost=True)),
    "thoughts longer than all": _text(
        used(completion_tokens=5, completion_tokens_details={"reasoning_tokens": 10**30})
    ),
    "an ending of no kind": _text(
        completion(choices=[{"message": {"content": "Hello."}, "finish_reason": {"a": 1}}])
    ),
    "much": _text(spoken("x" * 2_000_000)),
    "too much": _text(spoken("x" * 17_000_000)),
    "very many values": b"[" + b"{}," * 3_000_000 + b"{}]",
    "many values": b"[" + b"{}," * 99_000 + b"{}]",
    "many vectors": b'{"data": [' + b"{}," * 99_000 + b"{}]}",
    "many numbers": b'{"data": [{"embedding": [' + b"0," * 5_000_000 + b"0]}]}",
    "Ollama's": _text(
        {
            "model": "m",
            "message": {"content": "Hello.", "thinking": 5},
            "prompt_eval_count": -1,
            "eval_count": "x",
        }
    ),
}
HEADS: Mapping[str, bytes] = {
    "proper": b"",
    "another kind": b"Content-Type: text/html\r\n",
    "a charset that is none": b"Content-Type: application/json; charset=no-such\r\n",
    "packed as is not": b"Content-Encoding: gzip\r\n",
    "packed as nobody asked": b"Content-Encoding: br\r\n",
    "packed twice": b"Content-Encoding: gzip, gzip\r\n",
    "wait for ever": b"Retry-After: 99999999999\r\n",
    "wait below zero": b"Retry-After: -1\r\n",
    "wait NaN": b"Retry-After: nan\r\n",
    "wait till a date": b"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
    "elsewhere": b"Location: /v1/chat/completions\r\n",
    "into a file": b"Location: file:///etc/passwd\r\n",
    "nowhere": b"Location: http://[::1\r\n",
    "many headers": b"X-A: b\r\n" * 2_000,
    "a long header": b"X-A: " + b"b" * 70_000 + b"\r\n",
    "an odd header": b"X\x01A: \x1b[2J\r\n",
}
STATUSES = (b"200 OK", b"200 \x1b[31m", b"204 No Content", b"301 Moved", b"307 Moved", b"400 Bad", b"401 No", b"404 Gone", b"429 Slow",
            b"500 Broken", b"503 Busy", b"504 Late", b"599 X", b"999 X", b"000 X", b"abc")  # fmt: skip


def whole(body: bytes, head: bytes = b"", status: bytes = b"200 OK") -> Pieces:
    """An answer as it should be sent."""
    length = b"\r\nContent-Length: " + str(len(body)).encode()
    yield b"HTTP/1.1 " + status + length + b"\r\n" + head + b"\r\n" + body


def headed(head: bytes, rest: Iterator[bytes]) -> Pieces:
    """An answer with these headers, and then whatever comes."""
    yield b"HTTP/1.1 200 OK\r\n" + head + b"\r\n"
    yield from rest


@cache
def gzip_bomb(size: int) -> bytes:
    """So many zeros as gzip, packed to a thousandth."""
    packer, zeros = zlib.compressobj(9, wbits=31), bytes(1 << 20)
    return b"".join([*(packer.compress(zeros) for _ in range(size >> 20)), packer.flush()])


_JSON = b"Content-Type: application/json\r\n"
_GOOD = BODIES["proper"]
WAYS: Mapping[str, Callable[[bytes], Pieces]] = {
    "says too little": lambda body: headed(_JSON + b"Content-Length: 5\r\n", iter([body])),
    "says too much": lambda body: headed(_JSON + b"Content-Length: 99999999\r\n", iter([body])),
    "says a length below zero": lambda body: headed(_JSON + b"Content-Length: -1\r\n", iter([body])),
    "says two lengths": lambda body: headed(_JSON + b"Content-Length: 5\r\nContent-Length: 6\r\n", iter([body])),
    "says nothing of its length": lambda body: headed(_JSON, iter([body])),
    "ends at once": lambda _: iter(()),
    "ends in its head": lambda _: iter([b"HTTP/1.1 200 OK\r\nContent-"]),
    "is no HTTP": lambda body: iter([body]),
    "speaks TLS": lambda _: iter([b"\x15\x03\x03\x00\x02\x02\x46"]),
    "chunks of no size": lambda body: headed(_JSON + b"Transfer-Encoding: chunked\r\n", iter([b"zz\r\n" + body])),
    "a chunk that is cut": lambda body: headed(_JSON + b"Transfer-Encoding: chunked\r\n", iter([b"fffff\r\n" + body])),
    "a chunk without end": lambda _: headed(b"Transfer-Encoding: chunked\r\n", (b"10000\r\n" + b" " * 65_536 + b"\r\n" for _ in repeat(0))),
    "a body without end": lambda _: headed(_JSON, repeat(b" " * 65_536)),
    "a head without end": lambda _: (each for each in (b"HTTP/1.1 200 OK\r\n", *repeat(b"X-A: b\r\n" * 1_000, 10_000))),
    "always goes on": lambda _: repeat(b"HTTP/1.1 100 Continue\r\n\r\n", 1_000_000),
    "is silent": lambda _: (b"" for _ in repeat(0, _LONG)),
    "is silent after its head": lambda _: headed(b"Content-Length: 10\r\n", (b"" for _ in repeat(0, _LONG))),
    "trickles its body": lambda _: headed(_JSON + b"Content-Length: 5000\r\n", repeat(b" ", _LONG)),
    "trickles without a length": lambda _: headed(_JSON, repeat(b" ", _LONG)),
    "trickles its head": lambda _: (bytes([each]) for each in b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * _LONG),
    "trickles chunks": lambda _: headed(b"Transfer-Encoding: chunked\r\n", repeat(b"1\r\n \r\n", _LONG)),
    "packs it": lambda body: whole(gzip.compress(body), b"Content-Encoding: gzip\r\n"),
    "packs it without a head": lambda body: whole(zlib.compress(body)[2:-4], b"Content-Encoding: deflate\r\n"),
    "packs it and cuts it": lambda body: whole(gzip.compress(body)[:-12], b"Content-Encoding: gzip\r\n"),
    "packs very much": lambda _: whole(gzip_bomb(600_000_000), b"Content-Encoding: gzip\r\n"),
    "sends itself round": lambda _: whole(b"", b"Location: /v1/chat/completions\r\n", b"307 Round"),
    "an error without end": lambda _: (each for each in (b"HTTP/1.1 500 No\r\n\r\n", *repeat(b"x" * 65_536, 100_000))),
}  # fmt: skip
PATIENT = {"is silent", "is silent after its head", *(name for name in WAYS if name.startswith("trickles"))}
FAULTS: Mapping[str, Callable[[], Pieces]] = {
    **{f"body: {name}": lambda body=body: whole(body, _JSON) for name, body in BODIES.items()},  # type: ignore[misc]
    **{f"way: {name}": lambda way=way: way(_GOOD) for name, way in WAYS.items()},  # type: ignore[misc]
    **{
        f"head: {name} ({status.decode('latin-1')[:3]})": lambda head=head, status=status: whole(
            _GOOD, head, status
        )  # type: ignore[misc]
        for name, head in HEADS.items()
        for status in (b"200 OK", b"307 Moved", b"429 Slow")
    },
}


def any_fault(chance: random.Random) -> tuple[str, Callable[[], Pieces]]:
    """Several faults at once, and what they are."""
    body, head, status = chance.choice(list(BODIES)), chance.choice(list(HEADS)), chance.choice(STATUSES)
    data = bytearray(BODIES[body])
    flips = chance.choice((0, 0, 1, 5)) if data else 0
    for _ in range(flips):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if chance.random() < 0.3:
        way = chance.choice(sorted(set(WAYS) - PATIENT))
        return f"{way}: {body}, {flips} flips", lambda: WAYS[way](bytes(data))
    return f"{status!r}, {head}: {body}, {flips} flips", lambda: whole(bytes(data), HEADS[head], status)


@contextmanager
def faulty_server(play: Callable[[], Pieces]) -> Iterator[str]:
    """The address of a server that answers every request with what `play` gives."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        stopped = threading.Event()
        thread = threading.Thread(target=_serve, args=(server, play, stopped), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        finally:
            stopped.set()
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket, play: Callable[[], Pieces], stopped: threading.Event) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection, play(), stopped), daemon=True).start()


def _answer(connection: socket.socket, pieces: Pieces, stopped: threading.Event) -> None:
    with connection, suppress(OSError):
        connection.settimeout(30)
        asked = b""
        while b"\r\n\r\n" not in asked and (more := connection.recv(65_536)):
            asked += more
        for piece in pieces:
            if stopped.is_set():
                return
            if piece:
                connection.sendall(piece)
            if len(piece) < 10:  # it trickles
                stopped.wait(CALM)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass
