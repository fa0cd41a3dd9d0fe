"""A worker that dies, hangs or lies is replaced, and opening a sandbox says what works here."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from support.waiting import AMPLE, processes_below, until

from kgot_lab.errors import BadInput, NoSandbox, QueryFailed, SandboxError, UnknownName
from kgot_lab.sandbox import LANGUAGES, Launch, Sandbox, launchers, open_sandbox, probe
from kgot_lab.sandbox.worker import seccomp
from kgot_lab.types import Diff, Edge, Node

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that is tested here needs Linux")

ADA, LONDON = Node("Ada", ("Person",), {"born": 1815, "tags": ["maths"]}), Node("London", ("City",))
BORN = Edge("Ada", "born in", "London", {"sure": True})


@pytest.fixture(scope="module")
def opened():
    with open_sandbox(seconds=AMPLE, memory_mb=256) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(opened):
    opened.reset((ADA, LONDON), (BORN,))
    return opened


def test_a_worker_killed_between_statements_is_replaced_unnoticed(sandbox):
    sandbox.apply(sandbox.write("G.add_node('x')"))
    os.killpg(sandbox._worker.process.pid, signal.SIGKILL)
    sandbox._worker.process.wait()
    assert sandbox.read("result = names()") == ("Ada", "London", "x")


def test_a_worker_killed_during_a_statement_fails_that_one_only(sandbox):
    worker = once_a_statement_runs(sandbox, lambda: os.killpg(sandbox._worker.process.pid, signal.SIGKILL))
    reason = "the sandbox ended or stopped while it ran the statement; it starts afresh"
    with pytest.raises(QueryFailed, match=reason):
        sandbox.read("import time; time.sleep(1000)")
    worker.join()
    assert sandbox.read("result = names()") == ("Ada", "London")


def test_a_worker_stopped_during_a_statement_is_not_told_as_the_statements_doing(sandbox, monkeypatch):
    monkeypatch.setattr(sandbox, "seconds", 2.0)
    monkeypatch.setattr("kgot_lab.sandbox.process._MAX_GRACE_SECONDS", 0.1)

    def stop() -> None:
        for process in processes_below(sandbox._worker.process.pid):
            os.kill(process, signal.SIGSTOP)

    worker = once_a_statement_runs(sandbox, stop)
    with pytest.raises(QueryFailed, match="the sandbox ended or stopped while it ran the statement"):
        sandbox.read("import time; time.sleep(1000)")
    worker.join()


def once_a_statement_runs(sandbox, act) -> threading.Thread:
    """Do something as soon as the worker of a sandbox has forked for a statement."""
    sandbox.read("result = 1")
    pid = sandbox._worker.process.pid
    idle = processes_below(pid)  # what the last statement ran in is gone before it answers

    def wait() -> None:
        until(lambda: processes_below(pid) - idle, "a statement runs")
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def _talking(answer: str, *, hello: str = "say(b'!')", patience: float = AMPLE) -> Launch:
    code = (
        "import os, struct, sys, time\n"
        "def say(b): os.write(1, struct.pack('>I', len(b)) + b)\n"
        f"{hello}\nwhile os.read(0, 1 << 20): {answer}\n"
    )
    return Launch("talking", (sys.executable, "-c", code), {}, patience)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("sys.exit()", "it ended"),
        ("os.write(1, b'\\xff' * 8)", "impossible length"),
        ("os.write(1, b'\\0' * 8)", "impossible length"),
        (
            "os.write(1, b'#\\n# There is insufficient memory\\n')",
            "in place of an answer came 'There is insufficient memory'",
        ),
        ("time.sleep(1000)", "does not answer"),
        ("os.write(1, b'\\0\\0\\0\\x09='); time.sleep(1000)", "does not answer"),
        ("say(b'=nonsense')", "not JSON"),
        ("say(b'=' + b'\\xff')", "not JSON"),
        ("say(b'=7')", "not an object"),
        ("say(b'?')", "ended the interpreter"),
        ("say(b'xnonsense')", "ended the interpreter"),
    ],
)
def test_a_worker_that_lies_fails_one_statement(answer, reason, monkeypatch):
    monkeypatch.setattr("kgot_lab.sandbox.process._MAX_GRACE_SECONDS", 0.1)
    launch = _talking(
        f"n = globals().get('n', 0) + 1; say(b'!') if n == 1 else {answer.replace('; ', ' or ')}"
    )
    seconds = 0.2 if reason == "does not answer" else AMPLE
    with Sandbox(launch, seconds=seconds) as sandbox, pytest.raises(QueryFailed, match=reason):
        sandbox.read("result = 1")


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        (Launch("absent", ("/no/such/program",), {}), "could not be started"),
        (_talking("0", hello="sys.exit('this machine will not do')"), "this machine will not do"),
        (_talking("0", hello="time.sleep(1000)", patience=0.2), "does not answer"),
        (_talking("sys.exit()"), "could not load the graph"),
    ],
)
def test_a_sandbox_that_cannot_start_says_what_it_heard(launch, reason):
    with Sandbox(launch) as sandbox, pytest.raises(SandboxError, match=reason):
        sandbox.read("result = 1")


def test_many_changes_at_once_reach_the_worker(sandbox, monkeypatch):
    for most in (5, 5_000):
        monkeypatch.setattr("kgot_lab.sandbox.process.MAX_PENDING", most)
        sandbox.apply(Diff(added_nodes=tuple(Node(f"{most} {i}") for i in range(9))))
        changed = (Node(f"{most} 1"), Node(f"{most} 1", ("L",)))
        sandbox.apply(Diff(removed_nodes=(Node(f"{most} 0"),), changed_nodes=(changed,)))
        read = f"result = [len(G), '{most} 0' in G, G.nodes['{most} 1']['label']]"
        assert sandbox.read(read) == (10 if most == 5 else 18, False, "L")


def test_an_interrupted_statement_does_not_answer_the_next_one(sandbox):
    class Interrupt(Exception):
        pass

    def raise_it(*_: object) -> None:
        raise Interrupt

    usual = signal.signal(signal.SIGUSR1, raise_it)
    try:
        waiting = once_a_statement_runs(sandbox, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        with pytest.raises(Interrupt):
            sandbox.read("import time; time.sleep(1000); result = 'late'")
        waiting.join()
    finally:
        signal.signal(signal.SIGUSR1, usual)
    assert sandbox.read("result = 'mine'") == ("mine",)


def test_threads_may_share_a_sandbox(sandbox):
    answers: dict[int, tuple] = {}

    def answer(n):
        answers[n] = sandbox.read(f"result = {n}")

    threads = [threading.Thread(target=answer, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: (n,) for n in range(8)}


def test_a_sandbox_outlives_the_thread_that_started_it():
    with open_sandbox() as sandbox:
        sandbox.close()
        thread = threading.Thread(target=sandbox.read, args=("result = 1",))
        thread.start()
        thread.join()
        assert sandbox.read("result = 2") == (2,)


def test_a_statement_works_inside_a_running_event_loop(sandbox):
    async def cell() -> tuple:
        return sandbox.read("result = 3")

    assert asyncio.run(cell()) == (3,)


@pytest.mark.extended
def test_a_forgotten_sandbox_leaves_no_process_behind():
    sandbox = open_sandbox()
    process = sandbox._worker.process
    del sandbox
    gc.collect()
    assert process.returncode == -signal.SIGKILL


def test_apply_refuses_a_diff_that_does_not_fit(sandbox):
    for diff in (
        Diff(added_nodes=(ADA,)),
        Diff(removed_nodes=(Node("Bob"),)),
        Diff(removed_nodes=(LONDON,)),
        Diff(added_edges=(Edge("Ada", "x", "Bob"),)),
        Diff(changed_nodes=((LONDON, ADA),)),
        Diff(removed_edges=(Edge("Ada", "born in", "London"),)),
        Diff(added_nodes=(Node("n"), Node("n"))),
        Diff(added_edges=(Edge("Ada", "x", "Ada"),) * 2),
        Diff(removed_edges=(BORN,), changed_edges=((BORN, BORN),)),
        Diff(changed_nodes=((Node("Ada", ("Person",), {"born": True}), ADA),)),
    ):
        with pytest.raises(BadInput, match=r"does not fit|twice"):
            sandbox.apply(diff)
    assert sandbox.read("result = len(G)") == (2,)


# --- opening ---


def test_probe_names_the_sandbox_that_works():
    assert probe().startswith("bubblewrap works (")


def test_an_unknown_kind_lists_the_kinds():
    with pytest.raises(UnknownName, match="Known: auto, bubblewrap, docker, unsafe"):
        open_sandbox("firejail")


def test_the_unsafe_sandbox_must_be_asked_for_twice():
    with pytest.raises(BadInput, match="unsafe=True"):
        open_sandbox("unsafe")


def test_without_a_sandbox_the_error_says_what_to_install(monkeypatch, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr("kgot_lab.sandbox.launchers.bubblewrap_programs", lambda: [broken])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoSandbox) as none:
        open_sandbox()
    for part in ("apt install bubblewrap", "kgot_lab[local]", "Docker", "no namespaces here"):
        assert part in str(none.value)
    with open_sandbox(unsafe=True) as sandbox:
        assert sandbox.launch.kind == "unsafe"


SHORT = [
    ("Too many open files", "no more files"),
    ("Cannot allocate memory", "want of memory"),
    ("There is insufficient memory for the Java Runtime Environment to continue.", "want of memory"),
    ("java.lang.OutOfMemoryError: unable to create native thread", "want of memory"),
]


@pytest.mark.parametrize(("said", "headline"), SHORT)
def test_a_shortage_is_not_told_as_a_sandbox_that_is_missing(monkeypatch, tmp_path, said, headline):
    short = tmp_path / "bwrap"
    short.write_text(f"#!/bin/sh\necho bwrap: {said} >&2\nexit 1\n")
    short.chmod(0o755)
    monkeypatch.setattr("kgot_lab.sandbox.launchers.bubblewrap_programs", lambda: [short])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoSandbox, match=f"^no sandbox (could be )?started.*{headline}") as none:
        open_sandbox()
    assert "apt install" not in str(none.value)


def test_a_project_in_the_temporary_folder_is_shown_to_an_engine_that_has_one_of_its_own():
    command = launchers.launch_bubblewrap(Path("bwrap"), LANGUAGES["cypher"], 512).command
    assert command.index("--tmpfs") < command.index("--ro-bind"), "a later mount hides an earlier one"


def test_docker_is_asked_for_no_network_and_nothing_writable(monkeypatch, tmp_path):
    """Docker itself is not run here; this keeps the promises of its command line in view."""
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    command = " ".join(next(launchers.docker_launches(LANGUAGES["python"], 512)).command)
    for part in ("--network none", "--read-only", "--cap-drop ALL", "no-new-privileges", ":ro"):
        assert part in command


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_well_formed_program(machine):
    """Eight bytes an instruction, no jump out of the program, a return at the end: what the kernel's own
    check asks for.
    """
    code = list(struct.iter_unpack("HBBI", seccomp.filter_program(machine)))
    assert 0 < len(code) <= 4096
    for at, (operation, when, otherwise, _) in enumerate(code):
        if operation in (0x15, 0x35):
            assert at + 1 + max(when, otherwise) < len(code)
    assert code[-1][0] == 0x06


def test_a_machine_without_a_table_gets_no_filter():
    with pytest.raises(OSError, match="pdp11"):
        seccomp.filter_program("pdp11")


def test_the_worker_imports_nothing_of_the_package_but_its_own_folder(sandbox):
    seen = sandbox.read("import sys; result = sorted(m for m in sys.modules if m.startswith('kgot_lab'))")
    shared = ("worker", "worker.fork_server", "worker.seccomp", "worker.values")
    own = ("python", "python.worker", "python.tracking_graph", "python.helpers")
    packages = {"kgot_lab", "kgot_lab.sandbox"}
    assert set(seen) == {*packages, *(f"kgot_lab.sandbox.{name}" for name in (*shared, *own))}


# --- few resources ---


def limited(launch: Launch, limit: str) -> Launch:
    """The same worker, started by a shell that allows it less."""
    return replace(launch, command=("/bin/sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *launch.command))


@pytest.mark.parametrize("limit", ["-n 24", "-t 30", "-v 1000000"])
def test_a_sandbox_works_where_the_machine_allows_less_than_a_statement_may_have(opened, limit):
    with Sandbox(limited(opened.launch, limit), seconds=AMPLE, memory_mb=2000) as sandbox:
        assert sandbox.read("result = 1 + 1") == (2,)


def test_a_program_that_cannot_start_for_want_of_memory_is_told_in_one_line(opened):
    with Sandbox(limited(opened.launch, "-v 20000")) as sandbox, pytest.raises(SandboxError) as caught:
        sandbox.read("result = 1")
    told = str(caught.value).removeprefix("the bubblewrap sandbox did not start: ")
    assert told not in {str(caught.value), "it ended"} and "\n" not in told


@pytest.mark.extended
def test_cypher_with_too_little_address_space_is_told_as_want_of_memory():
    pytest.importorskip("arcadedb_embedded")
    code = "from kgot_lab.sandbox import open_sandbox; open_sandbox('bubblewrap', language='cypher').close()"
    command = ["/bin/sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh", sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "NoSandbox: no sandbox started for want of memory" in ran.stderr, ran.stderr
    assert "VM: Could not" in ran.stderr and "Install" not in ran.stderr


GO = """runtime: mmap: errno=12
fatal error: failed to reserve page summary memory

runtime stack:
runtime.throw({0x1?, 0x2?})
\t/usr/local/go/src/runtime/panic.go:1229 +0x48 fp=0x7ffe sp=0x7ffd pc=0x47
"""
JAVA = """Error occurred during initialization of VM
Could not reserve enough space for 524288KB object heap
"""
DOCKER = """Unable to find image 'python:3.12-slim' locally
docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?

Run 'docker run --help' for more information
"""
PYTHON = """Traceback (most recent call last):
  File "<string>", line 1, in <module>
OSError: [Errno 24] Too many open files: 'config.py'
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (GO, "fatal error: failed to reserve page summary memory"),
        (
            DOCKER,
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        ),
        (
            JAVA,
            "Error occurred during initialization of VM: Could not reserve enough space for 524288KB object heap",
        ),
        ("#\n# A fatal error has been detected\n#\n", "A fatal error has been detected"),
        (PYTHON, "OSError: [Errno 24] Too many open files: 'config.py'"),
        ("python3: cannot allocate memory\n", "python3: cannot allocate memory"),
        ("", "it ended"),
    ],
    ids=["Go", "Docker", "Java", "Java's last words", "Python", "another", "nothing"],
)
def test_of_what_a_program_says_one_line_is_told(tmp_path, said, told):
    (tmp_path / "said").write_text(said)
    launch = Launch("docker", ("/bin/sh", "-c", 'cat "$0" >&2; exit 1', str(tmp_path / "said")), {})
    with Sandbox(launch) as sandbox, pytest.raises(SandboxError) as caught:
        sandbox.read("result = 1")
    assert str(caught.value) == f"the docker sandbox did not start: {told}"


def test_a_process_that_may_open_no_more_files_says_so(opened):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    sandbox = Sandbox(opened.launch)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        reason = r"bubblewrap sandbox could not be started: .*Too many open files"
        with pytest.raises(SandboxError, match=reason):
            sandbox.read("result = 1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
