"""Hostile Python: what a statement could try on the sandbox, and a pattern for what each try must get."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HostileCode:
    """Code, how it is run, and a pattern for what it must get. NAMES in capitals stand for places on the
    host.
    """

    kind: str
    name: str
    code: str
    gets: str
    do: str = "read"


DENIED = "Operation not permitted"

BROKEN = "(took longer|crashed|ended the interpreter|MemoryError)"

C = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"


def attacks(kind: str, *tries: tuple[str, ...]) -> list[HostileCode]:
    """Attacks of one kind, each given by its name, its code, what it gets, and how it is run if it is no read."""
    return [HostileCode(kind, *each) for each in tries]


def call(name: str, number: int, arguments: str = "0, 0, 0, 0, 0") -> HostileCode:
    """A raw system call that must be refused (x86_64 numbers)."""
    code = f"{C}got = libc.syscall({number}, {arguments})\nresult = [got, os.strerror(ctypes.get_errno())]"
    return HostileCode("system calls", name, code, r"returned \(-1, '" + DENIED)


def forged(name: str, text: str, gets: str, do: str = "write") -> HostileCode:
    """Write a reply of one's own on the one descriptor there is, and leave."""
    return HostileCode("forged replies", name, f"import os\nos.write(3, {text})\nos._exit(0)", gets, do)


_FILES = attacks(
    "files",
    ("read /etc/passwd", "result = open('/etc/passwd').read()", "No such file"),
    ("read a file of the host", "result = open('SECRET_FILE').read()", "No such file"),
    ("read the project", "result = open('PROJECT/pyproject.toml').read()", "No such file"),
    (
        "list the home folder",
        "import os\nresult = set(os.listdir('HOME')) - {*PYTHON}",
        r"No such file|returned \(\)",
    ),
    ("list processes", "import os\nresult = os.listdir('/proc')", "No such file"),
    ("open a device", "result = open('/dev/mem', 'rb').read(1)", "No such file"),
    (
        "read the environment",
        "import os\nresult = [v for v in os.environ.values() if 'secret' in v]",
        r"returned \(\)",
    ),
    ("write to /tmp", "open('/tmp/x', 'w')", "No such file|Read-only"),
    ("write beside the interpreter", "import os\nopen(os.__file__ + '.x', 'w')", "Read-only"),
    ("write to the root", "open('/x', 'w')", "Read-only"),
    ("write to shared memory", "open('/dev/shm/x', 'w')", "No such file|Read-only"),
    ("make a folder", "import os\nos.mkdir('/d')", DENIED),
    (
        "symbolic link to the host",
        "import os\nos.symlink('SECRET_FILE', '/link')\nresult = open('/link').read()",
        DENIED,
    ),
    ("leave the root", "import os\nos.chroot('..')", DENIED),
)

_NETWORK = attacks(
    "network",
    (
        "connect to the host's loopback",
        "import socket\nsocket.create_connection(('127.0.0.1', PORT), 1)",
        DENIED,
    ),
    (
        "ask for a name",
        "import socket\nresult = socket.getaddrinfo('example.org', 80)",
        "gaierror|Operation not permitted",
    ),
    ("listen", "import socket\nsocket.socket().bind(('127.0.0.1', 0))", DENIED),
    ("unix socket", "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0x')", DENIED),
    (
        "fetch a page",
        "import urllib.request as u\nresult = u.urlopen('http://127.0.0.1:PORT').read()",
        DENIED,
    ),
    ("event loop", "import asyncio\nasyncio.run(asyncio.sleep(0))", DENIED),
)

_PROCESSES = attacks(
    "processes",
    ("fork bomb", "import os\nwhile True: os.fork()", DENIED),
    ("thread", "import threading\nthreading.Thread(target=print).start()", "can't start new thread"),
    ("run a program", "import subprocess\nresult = subprocess.run(['/bin/ls'])", DENIED),
    ("become a program", "import os, sys\nos.execv(sys.executable, ['python'])", DENIED),
    ("spawn", "import os\nos.posix_spawn('/bin/sh', ['sh'], {})", DENIED),
    ("shell", "import os\nresult = os.system('id')", r"returned \((-1|32512),\)"),
    (
        "multiprocessing",
        "import multiprocessing as m\nm.get_context('fork').Process(target=print).start()",
        DENIED,
    ),
)

_RESOURCES = attacks(
    "resources",
    ("memory bomb", "x = bytearray(10**10)", "MemoryError"),
    ("memory bomb, slowly", "x = []\nwhile True: x.append(bytearray(10**6))", "MemoryError|took longer"),
    ("map 1 TB", "import mmap\nmmap.mmap(-1, 1 << 40)", "Cannot allocate|MemoryError"),
    ("endless loop", "while True: pass", "took longer"),
    (
        "endless loop that swallows errors",
        "while True:\n try: 1/0\n except BaseException: pass",
        "took longer",
    ),
    ("one long C call", "result = 9 ** 9 ** 9", BROKEN),
    ("catastrophic pattern", "import re\nresult = re.match('(a+)+$', 'a' * 60 + 'b')", "took longer"),
    ("sleep", "import time\ntime.sleep(1000)", "took longer"),
    ("endless rows", "import itertools\nresult = itertools.count()", "more than 100,000 items|took longer"),
    ("endless nested rows", "x = []\nx.append(x)\nresult = x", "levels deep"),
    ("huge row", "result = 'x' * 5_000_000", "more than 1,000,000 bytes"),
    ("endless printing", "while True: print('x' * 1000)", "printed more than", "compute"),
    ("huge computed text", "'x' * 50_000_000", "50,000,000 characters; 200,000 can", "compute"),
    (
        "huge change",
        "for i in range(60): G.add_node(i, x='y' * 400_000)",
        "more than 16,000,000 bytes",
        "write",
    ),
    (
        "flood the result pipe",
        "import os\nwhile True: os.write(3, b'x' * 65536)",
        "more than 1,000,000 bytes",
    ),
    ("recursion", "def f(): return f()\nf()", "RecursionError"),
    (
        "recursion in C",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return [*map(lambda _: f(), [1])]\nf()",
        BROKEN,
    ),
    ("deep source", "result = " + "(" * 500 + ")" * 500, "SyntaxError|crashed|MemoryError|RecursionError"),
    ("use up descriptors", "import os\nx = [os.open('/', 0) for _ in range(5000)]", "Too many open files"),
)

_WORKER = attacks(
    "the worker",
    ("kill it", "import os\nos.kill(os.getppid(), 9)", DENIED),
    ("kill everything", "import os\nos.kill(-1, 9)", DENIED),
    ("open its memory", "import os\nresult = open(f'/proc/{os.getppid()}/mem', 'r+b')", "No such file"),
    ("signal it by pidfd", "import os\nos.pidfd_open(os.getppid())", DENIED),
    (
        "take its limits away",
        "import os, resource as r\nr.prlimit(os.getppid(), r.RLIMIT_CPU, (1, 1))",
        DENIED,
    ),
    ("slow it down", "import os\nos.setpriority(os.PRIO_PROCESS, os.getppid(), 19)", DENIED),
    ("own its signals", "import fcntl, os\nfcntl.fcntl(3, fcntl.F_SETOWN, os.getppid())", DENIED),
    ("choose the signal", "import fcntl\nfcntl.fcntl(3, fcntl.F_SETSIG, 9)", DENIED),
    ("stop myself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", DENIED),
    ("close the result and stay", "import os, time\nos.close(3)\ntime.sleep(1000)", "took longer"),
    (
        "answer and stay",
        "import os, time\nos.write(3, b'{\"rows\": []}')\nos.close(3)\ntime.sleep(1000)",
        "took longer",
    ),
    (
        "lift my own limits",
        "import resource as r\nr.setrlimit(r.RLIMIT_AS, (-1, -1))",
        "not allowed to raise|" + DENIED,
    ),
)

_CALLS = [
    call("ptrace attach", 101, "16, os.getppid(), 0, 0"),
    call("process_vm_readv", 310, "os.getppid(), 0, 0, 0, 0, 0"),
    call("process_vm_writev", 311, "os.getppid(), 0, 0, 0, 0, 0"),
    call("clone", 56, "17, 0, 0, 0, 0"),
    call("clone3", 435),
    call("vfork", 58),
    call("execve", 59),
    call("execveat", 322),
    call("socket", 41, "2, 1, 0"),
    call("socketpair", 53, "1, 1, 0, 0"),
    call("tgkill", 234, "os.getppid(), os.getppid(), 9"),
    call("rt_sigqueueinfo", 129),
    call("pidfd_send_signal", 424),
    call("prctl: dumpable again", 157, "4, 1, 0, 0, 0"),
    call("prctl: seccomp off", 157, "22, 0, 0, 0, 0"),
    call("seccomp: another filter", 317),
    call("mount", 165),
    call("umount", 166),
    call("pivot_root", 155),
    call("unshare", 272, "0x10000000"),
    call("setns", 308),
    call("bpf", 321),
    call("keyctl", 250),
    call("add_key", 248),
    call("io_uring_setup", 425),
    call("userfaultfd", 323),
    call("perf_event_open", 298),
    call("open_by_handle_at", 304),
    call("shmget", 29, "1, 4096, 950"),
    call("mq_open", 240),
    call("personality", 135, "0x0040000"),
    call("memfd_create", 319),
    *attacks(
        "system calls",
        ("x32 numbers", f"{C}libc.syscall(0x40000000 + 39)", "crashed.*SIGSYS"),
        (
            "32-bit calls",
            "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))\n"
            "result = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()",
            "crashed.*SIG(SYS|SEGV)",
        ),
    ),
]

FRAME = "(b'\\0\\0\\0\\x0c={\"rows\":[1]}' * 9)"

_FORGED = [
    *attacks(
        "forged replies",
        (
            "a frame on every descriptor",
            f"import os\nfor d in [*range(3), *range(4, 4096)]:\n try: os.write(d, {FRAME})\n except OSError: pass\nresult = 'mine'",
            r"returned \('mine',\)",
        ),
        (
            "find the worker's pipes",
            "import os\nresult = [d for d in range(64) if os.isatty(d) or not os.fstat(d)]",
            "Bad file",
        ),
    ),
    forged("not JSON", "b'}{'", "not JSON"),
    forged("a frame on my own", FRAME, "not JSON"),
    forged("half a reply, then a whole", "b'{'", "not JSON"),
    forged("not a number", 'b\'{"nodes": [["a", [], {"x": NaN}]], "edges": []}\'', "not JSON"),
    forged("infinity", "b'{\"rows\": [Infinity]}'", "not JSON", "read"),
    forged("deep", "b'[' * 100_000 + b']' * 100_000", "not JSON"),
    forged("rather deep", "b'{\"rows\": ' + b'[' * 500 + b']' * 500 + b'}'", "nested too deeply", "read"),
    forged("half a surrogate", 'b\'{"rows": ["\\\\ud800"]}\'', "not JSON", "read"),
    forged("a list", "b'[]'", "not an object"),
    forged("rows that are none", 'b\'{"rows": {"a": 1}}\'', "no rows", "read"),
    forged("a write's reply to a read", 'b\'{"nodes": [["Ada"]], "edges": []}\'', "no rows", "read"),
    forged("a read's reply to a write", "b'{\"rows\": []}'", "no nodes"),
    forged("an endless integer", "b'{\"rows\": [' + b'9' * 500_000 + b']}'", "more than 400 digits", "read"),
    forged(
        "long integers in a node",
        'b\'{"nodes": [["Ada", [], {"x": [\' + b",".join([b"1" * 3900] * 4000) + b\']}]], "edges": []}\'',
        "more than 400 digits",
    ),
    forged(
        "a list that no worker could read again",
        'b\'{"nodes": [["Ada", [], {"x": [\' + b",".join([b"1"] * 100_001) + b\']}]], "edges": []}\'',
        "a list of more than 100,000 items",
    ),
    forged("a node that is a number", 'b\'{"nodes": [[1, [], {}]], "edges": []}\'', "out of shape"),
    forged("a node without a name", 'b\'{"nodes": [[" ", [], {}]], "edges": []}\'', "out of shape"),
    forged("labels that are a text", 'b\'{"nodes": [["a", "bc", {}]], "edges": []}\'', "out of shape"),
    forged(
        "an edge into nothing",
        'b\'{"nodes": [], "edges": [["Ada", "knows", "Nobody", "", {}]]}\'',
        "has no node 'Nobody'",
    ),
    forged("a node removed, its edges not", 'b\'{"nodes": [["Ada"]], "edges": []}\'', "keeps an edge"),
    forged("an error that is an order", 'b\'{"error": {"do": "obey"}}\'', "no nodes"),
    forged("a huge error", "b'{\"error\": \"' + b'x' * 900_000 + b'\"}'", "^refused: x{2000}$"),
    *attacks(
        "forged replies",
        (
            "switch the journal off",
            "G._node.journal.on = False\nG.remove_node('Ada')",
            "-1 node, -1 edge",
            "write",
        ),
        (
            "change behind the journal",
            "dict.clear(G._node)",
            "no longer fit together",
            "write",
        ),
        (
            "an edge without its ends",
            "dict.pop(G._node, 'Ada')\nG.edges['Ada','London','born in']['x'] = 1",
            "no longer fit together",
            "write",
        ),
        ("a reader that writes", "G.add_node('Eve')\nresult = 1", "a read may not change the graph"),
        (
            "a reader that writes deep",
            "G.edges['Ada', 'London', 'born in'].update(x=1)\nresult = 1",
            "a read may not change the graph",
        ),
    ),
]

_PERSISTENCE = attacks(
    "the next statement",
    (
        "patch NetworkX",
        "nx.MultiDiGraph.add_edge = None\ntype(G).add_node = None\nnx.Graph = None\nresult = 1",
        ".",
    ),
    (
        "patch builtins",
        "import builtins\nbuiltins.len = builtins.sorted = builtins.dict = None\nresult = 'ok'",
        ".",
    ),
    (
        "patch json",
        "import json\njson.dumps = lambda *a, **k: '{\"rows\": [666]}'\nresult = 1",
        r"returned \(666,\)",
    ),
    ("patch the machinery", "import sys\nfor m in list(sys.modules): sys.modules[m] = None\nresult = 1", "."),
    (
        "leave a global",
        "global left\nleft = 'behind'\nimport builtins\nbuiltins.left = 'behind'\nresult = 1",
        "returned",
    ),
    ("find what was left", "result = left", "NameError"),
    (
        "change folder and environment",
        "import os\nos.environ['LEFT'] = '1'\nos.umask(0)\nresult = 1",
        "returned",
    ),
    ("find the environment", "import os\nresult = os.environ.get('LEFT', 'none')", r"returned \('none',\)"),
    ("clear the graph", "G.clear()\nresult = 1", "a read may not change the graph"),
    ("clear behind the journal", "for d in (G._node, G._succ, G._pred): dict.clear(d)\nresult = 1", "."),
    (
        "tamper with every object",
        "import gc\n[dict.clear(o) for o in gc.get_objects() if type(o).__name__ == 'Attributes']\nresult = 1",
        ".",
    ),
)

_INTERPRETER = attacks(
    "the interpreter",
    ("leave", "import os\nos._exit(0)", "ended the interpreter"),
    ("exit", "import sys\nsys.exit('bye')", "SystemExit: bye"),
    ("interrupt", "raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("abort", "import os\nos.abort()", "crashed"),
    ("crash", "import ctypes\nctypes.string_at(0)", "crashed.*SIGSEGV"),
    (
        "alarm",
        "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ntime.sleep(1)",
        "crashed.*SIGALRM",
    ),
    ("handlers at exit", "import atexit\natexit.register(lambda: 1/0)\nresult = 1", r"returned \(1,\)"),
    ("trace our code", "import sys\nsys.settrace(lambda *a: 1/0)\nresult = 1", "."),
    ("huge message", "raise ValueError('x' * 10**7)", "^refused: ValueError: x{600} "),
    (
        "error that cannot be shown",
        "class E(Exception):\n def __str__(self): raise E\nraise E",
        "cannot be shown",
    ),
    (
        "error that never ends",
        "class E(Exception):\n def __str__(self):\n  while True: pass\nraise E",
        "took longer",
    ),
    (
        "error that shows nonsense",
        "class E(Exception):\n def __str__(self): return 5\nraise E",
        "cannot be shown",
    ),
    ("class that lies", "class L:\n __class__ = dict\nresult = L()", "."),
    (
        "text that lies",
        "class L(str):\n def __str__(self): return 'lie'\n __repr__ = __str__\nresult = L('true')",
        "'true'",
    ),
    (
        "keys no JSON has",
        "result = {(1, 2): 3, frozenset([1]): 4}",
        r"returned \(\[\[1, 2\], 3\], \[\[1\], 4\]\)",
    ),
    ("mixed keys", "result = {1: 'a', None: 'b'}", r"returned \(\{'1': 'a', 'None': 'b'\},\)"),
    ("not a number", "result = [float('nan'), float('inf')]", r"returned \('nan', 'inf'\)"),
    (
        "iterator that never ends",
        "class L(list):\n def __iter__(self):\n  while True: yield 1\nresult = L()",
        "more than 100,000 items|took longer",
    ),
    (
        "mapping that never ends",
        "class M(dict):\n def items(self):\n  while True: yield (1, 1)\nresult = [M()]",
        "two keys .* are '1' as text",
    ),
    (
        "finaliser that never ends",
        "class D:\n def __del__(self):\n  while True: pass\nD()\nresult = 1",
        "took longer",
    ),
)

CODE_ATTACKS = [*_FILES, *_NETWORK, *_PROCESSES, *_RESOURCES, *_WORKER, *_CALLS]
CODE_ATTACKS += [*_FORGED, *_PERSISTENCE, *_INTERPRETER]
