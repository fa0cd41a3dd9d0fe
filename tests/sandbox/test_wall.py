"""What stands between a worker and this computer: files that are shown, the user it is, system calls, memory,
and what it may say.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from support.every import every
from support.waiting import AMPLE, until

from kgot_lab.errors import QueryFailed
from kgot_lab.sandbox import LANGUAGES, Launch, Sandbox, launchers, open_sandbox, process
from kgot_lab.sandbox.launchers import PYTHON_WORKER
from kgot_lab.sandbox.process import descendants
from kgot_lab.sandbox.replies import MAX_CHANGED, MAX_VALUES, _count_values

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that is tested here needs Linux")

SECRET = "KEY=the-secret"


# --- files ---


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of packages such as pip makes, with a package, and a file of secrets beside it and one above
    it.
    """
    packages = tmp_path / "venv" / "lib" / "site-packages"
    texts = {
        "toy/__init__.py": "name = 'toy'",
        "toy/words.txt": "its own",
        ".env": SECRET,
        "../../.env": SECRET,
    }
    for place, text in texts.items():
        (packages / place).parent.mkdir(parents=True, exist_ok=True)
        (packages / place).resolve().write_text(text)
    monkeypatch.syspath_prepend(packages)
    return packages


def test_what_stands_beside_a_package_is_not_shown(site):
    language = replace(PYTHON_WORKER, packages=("networkx", "numpy", "toy"))
    with Sandbox(next(launchers.bubblewrap_launches(language, 256)), seconds=AMPLE, memory_mb=256) as sandbox:
        assert sandbox.read(
            "import toy; result = [toy.name, open(toy.__path__[0] + '/words.txt').read()]"
        ) == ("toy", "its own")
        for secret in (site / ".env", site / "../../.env"):
            assert secret.read_text() == SECRET
            with pytest.raises(QueryFailed, match="No such file"):
                sandbox.read(f"result = open({str(secret.resolve())!r}).read()")


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_folder_of_packages_is_shown_as_a_whole(language):
    (program, *_) = launchers.bubblewrap_programs()
    command = launchers.launch_bubblewrap(program, LANGUAGES[language], 512).command
    shown = {Path(command[at + 1]) for at, option in enumerate(command) if option == "--ro-bind"}
    outside = {Path.home(), Path.cwd(), Path("/"), Path("/usr"), Path("/etc")}
    folders = outside | {Path(path) for path in sys.path if "-packages" in path}
    assert not shown & {folder.resolve() for folder in folders}
    assert shown >= set(LANGUAGES[language].visible_paths())


def test_packages_that_belong_to_python_itself_are_hidden(opened):
    within = Path(sysconfig.get_path("stdlib")) / "site-packages"
    shown = {place.name for place in PYTHON_WORKER.visible_paths()}
    found = opened.read(
        f"import os; result = os.listdir({str(within)!r}) if os.path.isdir({str(within)!r}) else []"
    )
    assert set(found) <= shown


# --- who it is, and what it may ask the kernel ---


@pytest.fixture(scope="module")
def opened():
    with open_sandbox(seconds=AMPLE, memory_mb=256) as sandbox:
        yield sandbox


def status(pid: int, field: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith(f"{field}:"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_run_by_root_the_worker_is_nobody_and_cannot_read_what_only_root_may(tmp_path):
    hidden = tmp_path / "toys" / "hidden.txt"
    hidden.parent.mkdir()
    hidden.write_text(SECRET)
    hidden.chmod(0o600)
    with open_sandbox(seconds=AMPLE) as sandbox:
        command = sandbox.launch.command
        at = command.index("--remount-ro")
        shown = (*command[:at], "--ro-bind", str(hidden), "/shown.txt", *command[at:])
        assert sandbox.read(
            "import os; result = [os.getuid(), os.geteuid(), os.getgid(), os.getgroups()]"
        ) == (65534, 65534, 65534, [])
    shown_sandbox = Sandbox(replace(sandbox.launch, command=shown), seconds=AMPLE)
    with shown_sandbox as sandbox, pytest.raises(QueryFailed, match="Permission denied"):
        sandbox.read("result = open('/shown.txt').read()")


def test_every_thread_of_the_engine_in_java_is_under_a_filter():
    pytest.importorskip("arcadedb_embedded")
    with open_sandbox(language="cypher", seconds=AMPLE) as sandbox:
        assert sandbox.read("RETURN 1 AS n") == ({"n": 1},)
        *_, engine = descendants(sandbox._worker.process.pid)
        threads = list(Path(f"/proc/{engine}/task").iterdir())
        assert len(threads) > 5
        assert {status(int(thread.name), "Seccomp") for thread in threads} == {"2"}


CONFINED = """
import os, socket, threading, ctypes, sys, tempfile, time
from kgot_lab.sandbox.worker import seccomp
go = threading.Event()
told = []
def attempt(what):
    try:
        what()
        return "done"
    except PermissionError:
        return "refused"
def thread():
    go.wait()
    told.append(attempt(lambda: socket.socket()))
early = threading.Thread(target=thread)
early.start()
seccomp.install_filter_for_threads(seccomp.engine_filter_program())
go.set()
early.join()
late = threading.Thread(target=thread)
late.start()
late.join()
told += [attempt(what) for what in (
    os.fork, lambda: os.execv("/bin/true", ["true"]), lambda: os.kill(os.getppid(), 0), lambda: os.setuid(0),
    lambda: open(os.path.join(sys.argv[1], "file"), "w").write("x"), lambda: os.unlink(os.path.join(sys.argv[1], "file")),
    lambda: os.memfd_create("x"), lambda: os.symlink("/", os.path.join(sys.argv[1], "link")),
)]
os.write(1, " ".join(told).encode())
os._exit(0)
"""


@pytest.mark.extended
def test_an_engine_has_threads_and_files_and_no_sockets_or_processes(tmp_path):
    command = [sys.executable, "-c", CONFINED, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(command, capture_output=True, timeout=AMPLE, env=environment)
    early, late, fork, execute, signal, user, write, remove, memory, link = said.stdout.decode().split()
    assert early == late == "refused", "a filter is for the threads that were there and for those that come"
    assert (fork, execute, signal, user, memory, link) == ("refused",) * 6
    assert (write, remove) == ("done", "done")


# --- memory of all its processes ---


def talking(answer: str) -> Launch:
    code = (
        "import os, struct, sys, time\n"
        "def say(b): os.write(1, struct.pack('>I', len(b)) + b)\n"
        "def request():\n"
        "    size, got = struct.unpack('>I', os.read(0, 4))[0], 0\n"
        "    while got < size: got += len(os.read(0, size - got))\n"
        f"say(b'!')\nrequest()\nsay(b'!')\nrequest()\n{answer}\n"
    )
    return Launch("talking", (sys.executable, "-c", code), {}, AMPLE)


def test_processes_that_each_keep_to_their_limit_are_bounded_together_and_end_together(tmp_path):
    pipe = tmp_path / "held"
    hold = f"os.mkfifo({str(pipe)!r}); held = os.open({str(pipe)!r}, os.O_RDWR)\n"
    hungry = f"{hold}for _ in range(8):\n    if os.fork() == 0: x = b'x' * (100 << 20); time.sleep(1000)\ntime.sleep(1000)"
    opened = Sandbox(talking(hungry), seconds=AMPLE, memory_mb=64)
    with opened as sandbox, pytest.raises(QueryFailed, match=r"more than .+ MB"):
        sandbox.read("result = 1")
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as end:
        until(lambda: end.read(1) == b"", "nobody holds the pipe any more, so all of them have ended")


def test_a_statement_may_have_what_it_was_promised_however_large_the_graph(opened):
    statement = "x = b'x' * (150 << 20); import time; time.sleep(0.3); result = len(x)"
    assert opened.read(statement) == (150 << 20,)


# --- what it says ---


def reply_of(nodes: int) -> str:
    """Code that says that so many nodes came."""
    made = (
        "b'{\"nodes\":[' + b','.join(b'[\"%d\",[],{}]' % n for n in range("
        + str(nodes)
        + ")) + b'],\"edges\":[]}'"
    )
    return f"say(b'=' + {made}); time.sleep(1000)"


@pytest.mark.extended
def test_a_forged_reply_of_very_many_nodes_is_refused_before_it_is_made_into_a_graph():
    refused = {
        800_000: f"more than {MAX_VALUES:,} values",
        MAX_CHANGED + 1: f"at most {MAX_CHANGED:,}: divide it",
    }
    for nodes, why in refused.items():
        with Sandbox(talking(reply_of(nodes)), seconds=AMPLE) as sandbox:
            begun = time.process_time()
            with pytest.raises(QueryFailed, match=why):
                sandbox.write("G")
            assert time.process_time() - begun < 5, "seconds of this process's own work"


@pytest.mark.extended
def test_as_many_changes_as_one_statement_may_make_are_taken():
    with Sandbox(talking(reply_of(MAX_CHANGED)), seconds=AMPLE) as sandbox:
        assert len(sandbox.write("G").added_nodes) == MAX_CHANGED


def test_commas_in_a_text_are_no_values():
    text = "," * (MAX_VALUES + 10)
    with Sandbox(
        talking(
            f'say(b\'=\' + b\'{{"nodes":[["a",[],{{"t":"\' + b\',\' * {len(text)} + b\'"}}]],"edges":[]}}\')'
        )
    ) as sandbox:
        (node,) = sandbox.write("G").added_nodes
    assert node.properties["t"] == text


@every(
    ("said", "why"),
    [
        ("say(b'=' + b'{\"rows\":[\"' + b'x' * 1_000_001 + b'\"]}')", "returned more than 1,000,000 bytes"),
        ("say(b'={\"rows\":[1e400]}')", "not JSON"),
        ("say(b'={\"rows\":[NaN]}')", "not JSON"),
        ("say(b'={\"rows\":' + b'[' * 400_000 + b']' * 400_000 + b'}')", "not JSON|nested too deeply"),
        ("say(b'={\"rows\":[' + b'9' * 5000 + b']}')", "more than 400 digits"),
        ("say(b'x' + b'9' * 10_000)", "ended the interpreter"),
    ],
)
def test_what_no_honest_statement_says_is_refused_in_one_sentence(said, why):
    with Sandbox(talking(said), seconds=AMPLE) as sandbox, pytest.raises(QueryFailed, match=why):
        sandbox.read("result = 1")


@pytest.mark.parametrize("end", [b'"}', b"", b"\\"], ids=["whole", "without an end", "cut off in an escape"])
def test_looking_into_the_texts_of_a_reply_takes_next_to_no_memory_and_one_pass(end):
    reply = b'{"rows": "' + b',\\"' * (2 * MAX_VALUES) + end
    tracemalloc.start()
    try:
        assert _count_values(reply) < 10
        assert tracemalloc.get_traced_memory()[1] < 4 * len(reply)
    finally:
        tracemalloc.stop()


def test_a_process_that_ends_while_it_is_looked_at_or_has_an_odd_name_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "status").write_bytes(b"Name:\t\xff\nRssAnon:\t2048 kB\n")
    monkeypatch.setattr(process, "_PROC", tmp_path)
    assert process.anonymous_megabytes((1,)) == 2
    (tmp_path / "1" / "task" / "1").mkdir(parents=True)
    (tmp_path / "1" / "task" / "1" / "children").write_text("2 ")

    def gone(folder):
        raise ProcessLookupError(3, "No such process")

    assert process.descendants(1) == (1, 2)
    monkeypatch.setattr(process.os, "listdir", gone)
    assert process.descendants(1) == (1,)
