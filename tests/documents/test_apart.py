"""Files that take too long, too much memory or are none: each is named with its reason, and the others are
read.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from support.every import every
from support.installed import needs
from support.office import docx
from support.waiting import AMPLE, processes_below, until
from support.zips import lying_zip, zip_of

from kgot_lab.documents.archives import zip_members
from kgot_lab.documents.files import Converter, ConvertLimits, extract_text, read_document_text
from kgot_lab.documents.folder import read_documents
from kgot_lab.errors import BadInput
from kgot_lab.io.files import read_regular_file, read_regular_text

pytestmark = pytest.mark.extended

needs("markitdown")
posix = pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
PAGE = b"<h1>Tea</h1><p>At four."


@pytest.fixture
def converter():
    made = Converter(ConvertLimits(seconds=AMPLE))
    yield made
    made.close()


def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_is_read(converter):
    converter.limits = ConvertLimits(seconds=0.5, seconds_a_megabyte=0)
    long = docx("Head", *["a"] * 100_000)
    assert len(long) < 24_000
    with pytest.raises(BadInput, match=r"takes longer than 0\.5 seconds to read"):
        converter.convert(long, ".docx")
    converter.limits = ConvertLimits(seconds=AMPLE)
    assert converter.convert(PAGE, ".html")["text"] == "# Tea\n\nAt four."


@pytest.mark.skipif(sys.platform != "linux", reason="no such limit there")
def test_a_file_that_takes_too_much_memory_is_refused_and_the_next_one_is_read(converter):
    converter.limits = ConvertLimits(seconds=AMPLE, memory_mb=16)
    expected = "needs more memory than a file may take"
    assert converter.convert(docx("Head", *["a"] * 100_000), ".docx")["error"] == expected
    assert converter.convert(PAGE, ".html")["text"] == "# Tea\n\nAt four."


def bytes_waiting(pipe) -> int:
    """How many bytes stand in a pipe that nobody has read, on Linux."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, struct.pack("i", 0)))[0]


@pytest.mark.skipif(
    sys.platform != "linux", reason="what waits in a pipe is not told at its writing end there"
)
def test_a_file_that_ends_the_converter_is_named_and_the_next_one_is_read(converter):
    converter.convert(PAGE, ".html")
    process = converter._process
    process.send_signal(signal.SIGSTOP)  # it hears nothing, and is then killed while a file waits for it
    os.waitpid(process.pid, os.WUNTRACED)
    with ThreadPoolExecutor(1) as other:
        reading = other.submit(converter.convert, PAGE, ".html")
        until(lambda: bytes_waiting(process.stdin), "the file waits")
        process.kill()
        with pytest.raises(BadInput, match="crash"):
            reading.result(AMPLE)
    assert "four" in converter.convert(PAGE, ".html")["text"]


def test_a_converter_that_went_to_rest_is_started_again(converter):
    converter.convert(PAGE, ".html")
    first = converter._process
    first.stdin.close()
    until(lambda: first.poll() is not None, "it ends")
    assert "four" in converter.convert(PAGE, ".html")["text"]
    assert converter._process is not first


def test_a_page_has_less_time_than_a_packed_file_and_stops_no_folder(converter, tmp_path, monkeypatch):
    limits = ConvertLimits()
    assert limits.time_limit(4_000_000, ".html") < 60 < limits.time_limit(4_000_000, ".pdf")
    assert limits.time_limit(400_000_000, ".htm") == 120 and limits.time_limit(400_000_000, ".xlsx") == 300
    converter.limits = ConvertLimits(seconds=1, seconds_a_megabyte=0)
    monkeypatch.setattr("kgot_lab.documents.files.process_converter", lambda _: converter)
    # a tag without an end: each is looked at to the end of the page
    (tmp_path / "hostile.html").write_text("<a " * 33_000)
    (tmp_path / "tea.txt").write_text("At four.")
    library = read_documents(tmp_path)
    assert [document.text for document in library] == ["At four."]
    expected = ["hostile.html: takes longer than 0.4 seconds to read"]
    assert [str(remark) for remark in library.skipped] == expected


def left_behind() -> tuple[set[int], set[str], int]:
    """The processes, open files and threads that this process has, but for those of its tests' own."""
    files = {str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}
    return processes_below(os.getpid()), {f for f in files if f.startswith("pipe:")}, threading.active_count()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists what a process has")
@pytest.mark.parametrize("end", ["rest", "kill", "memory", "time"])
def test_a_converter_that_ended_leaves_no_process_no_pipe_and_no_thread(converter, end):
    before = left_behind()
    converter.convert(PAGE, ".html")
    process = converter._process
    if end == "rest":
        process.stdin.close()
    elif end == "kill":
        os.kill(process.pid, signal.SIGKILL)  # as the system does where memory ends
    else:
        converter.limits = (
            ConvertLimits(seconds=AMPLE, memory_mb=16) if end == "memory" else ConvertLimits(0.5, 0)
        )
        with suppress(BadInput):
            converter.convert(docx("Head", *["a"] * 100_000), ".docx")
    until(lambda: left_behind() == before, "nothing of it is left")


FORKS = """
import os, sys
from kgot_lab.documents.files import Converter
converter = Converter()
converter.convert(b"<p>Tea", ".html")
first = converter._process.pid
if not (child := os.fork()):
    converter.close()
    sys.exit(0)
os.waitpid(child, 0)
converter.convert(b"<p>Tea", ".html")
assert converter._process.pid == first, "the fork ended it"
"""


@posix
def test_a_fork_does_not_end_the_converter_of_its_parent():
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS],
        capture_output=True,
        text=True,
        timeout=AMPLE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@posix
def test_an_interrupt_ends_the_conversion_and_no_process_stays(converter):
    class Interrupt(Exception):
        pass

    def raise_it(*_: object) -> None:
        raise Interrupt

    converter.convert(PAGE, ".html")
    process = converter._process
    usual = signal.signal(signal.SIGALRM, raise_it)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(Interrupt):
            converter.convert(docx("Head", *["a"] * 100_000), ".docx")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)
    assert process.poll() is not None
    assert "four" in converter.convert(PAGE, ".html")["text"]


def test_keys_of_the_environment_are_not_for_the_converter(converter, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    converter.convert(PAGE, ".html")
    if sys.platform == "linux":
        assert b"secret" not in read_regular_file(f"/proc/{converter._process.pid}/environ")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (zip_of({"word/document.xml": "0" * 20_000_000}), "unpacks to 20 MB, more than 200 times its size"),
        (lying_zip(2_000, said=4_000_000_000), "unpacks to|not a Word file|cannot be read"),
    ],
)
def test_what_unpacks_to_far_more_than_it_should_is_not_unpacked(data, why):
    with pytest.raises(BadInput, match=why):
        extract_text(data, ".docx")


@every(
    "charset",
    [
        "no-such",
        "hex",
        "rot13",
        "idna",
        "undefined",
        "punycode",
        "unicode_escape",
        "utf\x00-8",
        "é",
        "x" * 500,
    ],
)
def test_a_character_set_that_is_none_is_passed_over(charset):
    page = b'<meta charset="' + charset.encode() + b'"><p>caf\xe9 au lait'
    if b"\0" not in page:
        assert "caf" in extract_text(page, ".html").text
    assert extract_text(b"caf\xe9 au lait", ".txt", charset).text == "café au lait"
    assert extract_text("東京".encode(), ".txt", charset).text == "東京"


def test_a_character_set_whose_bytes_look_like_ascii_goes_first():
    assert extract_text("東京".encode("iso-2022-jp"), ".txt", "ISO-2022-JP").text == "東京"


# --- what is no file ---


@pytest.fixture
def odd(tmp_path):
    """A folder with a good file, and with paths of many kinds that are no files."""
    (tmp_path / "good.txt").write_text("Good.")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "folder.txt").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(tmp_path, os.O_RDONLY)
        server.bind(
            f"/proc/self/fd/{here}/socket.txt" if sys.platform == "linux" else str(tmp_path / "socket.txt")
        )
        os.close(here)
        yield tmp_path


PATHS = {
    "pipe.txt": "not a regular file but a pipe",
    "socket.txt": "not a regular file",
    "folder.txt": r"cannot be opened \(Is a directory\)",
    "missing.txt": r"cannot be opened \(No such file",
    "x" * 4_096: r"cannot be opened \(File name too long\)",
    "nul\0l.txt": "embedded null",
}


@posix
@pytest.mark.parametrize(("name", "why"), PATHS.items(), ids=lambda value: value[:12])
def test_a_path_that_is_no_file_is_refused_in_one_sentence(odd, name, why):
    with pytest.raises(BadInput, match=f"^{why}"):
        read_document_text(odd / name)
    with pytest.raises(OSError):
        read_regular_file(odd / name)
    with pytest.raises(BadInput, match=r"is not a zip file|x{300}"):
        zip_members(odd / name)


@posix
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/random", "/dev/tty", "/dev/stdin"])
def test_a_device_is_not_read(device):
    with pytest.raises(BadInput, match=r"not a regular file|cannot be opened"):
        read_document_text(Path(device))


def test_a_file_that_says_it_is_empty_is_read_as_far_as_is_allowed(tmp_path):
    if sys.platform == "linux":
        assert read_regular_file("/proc/self/status", 100_000).startswith(b"Name:")
        with pytest.raises(OSError, match="larger than 0 MB"):
            read_regular_file("/proc/self/status", 10)
    (tmp_path / "lines.txt").write_bytes(b"a\r\nb\rc\n")
    assert read_regular_text(tmp_path / "lines.txt") == "a\nb\nc\n"


@posix
def test_one_bad_path_stops_no_folder(odd):
    deep = odd / "deep"
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    try:
        for _ in range(20):  # a path of more than 4,096 bytes, made step by step
            os.mkdir("d" * 250, dir_fd=here)
            inner = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
        with os.fdopen(os.open("a.txt", os.O_CREAT | os.O_WRONLY, dir_fd=here), "w") as file:
            file.write("Deep.")
        library = read_documents(odd)
    finally:
        os.close(here)
        remove_deep(deep)
    reasons = {remark.path[:10]: remark.reason for remark in library.skipped}
    assert [document.text for document in library] == ["Good."]
    assert reasons.pop("deep/ddddd").endswith("(File name too long)")
    assert reasons == {name + ".txt": f"not a regular file but a {name}" for name in ("pipe", "socket")}


def remove_deep(folder) -> None:
    """Remove a folder whose path is longer than any path may be, bringing its inside up step by step."""
    for _ in range(20):
        inner = folder / ("d" * 250)
        if not inner.is_dir():
            break
        inner.rename(folder.with_name("inner"))
        folder.rmdir()
        folder.with_name("inner").rename(folder)
    (folder / "a.txt").unlink(missing_ok=True)


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_may_not_be_read_is_named(odd):
    (odd / "mine.txt").write_text("x")
    (odd / "mine.txt").chmod(0)
    assert "mine.txt: cannot be opened (Permission denied)" in map(str, read_documents(odd).skipped)


def test_a_folder_of_plain_texts_starts_no_process(tmp_path):
    for number in range(1_000):
        (tmp_path / f"{number}.txt").write_text(f"Text number {number}.")
    before = processes_below(os.getpid()) if sys.platform == "linux" else set()
    begun = time.process_time()
    assert len(read_documents(tmp_path)) == 1_000
    assert time.process_time() - begun < 3, "seconds of this process's own work"
    if sys.platform == "linux":
        assert processes_below(os.getpid()) <= before


def test_the_limits_hold_for_the_process_that_reads_and_not_for_this_one(converter):
    before = resource.getrlimit(resource.RLIMIT_DATA) if sys.platform == "linux" else None
    converter.convert(PAGE, ".html")
    assert before is None or resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists what a process has open")
def test_a_folder_that_is_refused_is_not_left_open(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(IsADirectoryError, match=tmp_path.name):
            read_regular_file(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
