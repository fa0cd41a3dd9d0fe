"""A system-call filter for the process that runs one statement: what Python and NetworkX need, and nothing
else.

It is an allow-list, because a list of forbidden calls becomes outdated: every call not in system_calls.json
fails with EPERM. So there are no processes or threads, no signals, no sockets, no shared memory, no new files,
and no access to the worker. A Java engine may also have its own threads and files, and signal itself, but no
processes and no sockets. The wrong architecture, and the x32 calls, kill the process. The numbers are from
the kernel's own tables: arch/x86/entry/syscalls/syscall_64.tbl and, for aarch64, which was not run here,
include/uapi/asm-generic/unistd.h. Runs inside the sandbox: imports the standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

# numbers of the allowed calls by machine; "engine": those that an engine with its own threads and files also needs
_CALLS = json.loads(Path(__file__).with_name("system_calls.json").read_text(encoding="utf-8"))
# clone, clone3, prctl, tgkill; then seccomp
_ENGINE_MACHINES = {"x86_64": (_CALLS["engine x86_64"], (56, 435, 157, 234), 317)}
_ENGINE_MACHINES["aarch64"] = (_CALLS["engine aarch64"], (220, 435, 167, 131), 277)
_PR_SET_NAME, _CLONE_THREAD = 15, 0x00010000
_FCNTL_LOCKS = (5, 6, 7, 36, 37, 38)  # fcntl's GETLK, SETLK, SETLKW, and those of open files
# architecture token, allowed calls, and the numbers of fcntl, ioctl and prlimit64, whose arguments decide
_MACHINES = {"x86_64": (0xC000003E, _CALLS["x86_64"], (72, 16, 302))}
_MACHINES["aarch64"] = (0xC00000B7, _CALLS["aarch64"], (25, 29, 261))
# DUPFD, GETFD, SETFD, GETFL, SETFL, DUPFD_CLOEXEC, GETPIPE_SZ; not SETOWN and SETSIG, which could signal the
# worker
_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030, 1032)
_IOCTL_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451)  # TCGETS, TIOCGWINSZ, FIONREAD, FIONCLEX, FIOCLEX
_X32 = 0x40000000

# BPF_LD|W|ABS; BPF_JMP and JEQ|K, JGE|K, JSET|K; BPF_RET|K
_BPF_LOAD, _BPF_EQUALS, _BPF_AT_LEAST, _BPF_HAS_BITS, _BPF_RETURN = (0x20, 0x15, 0x35, 0x45, 0x06)
# the last two are ERRNO with EPERM, with ENOSYS
_ALLOW, _KILL, _REFUSE, _UNKNOWN = (0x7FFF0000, 0x80000000, 0x00050001, 0x00050026)
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16  # offsets in struct seccomp_data
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38

CallTable = TypeVar("CallTable")
Instruction = tuple[int, int, int, int]
# a call, the index of one argument, and its allowed values
ConditionalCall = tuple[int, int, tuple[int, ...]]

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_program(machine: str = "") -> bytes:
    """Build the system-call filter as BPF instructions for a machine, by default this one.

    Raises OSError for a machine without a table.
    """
    architecture, calls, (fcntl, ioctl, prlimit) = _table(machine, _MACHINES)
    values = [(fcntl, 1, _FCNTL_COMMANDS), (ioctl, 1, _IOCTL_REQUESTS), (prlimit, 0, (0,))]
    return _assemble(architecture, calls, values)


def engine_filter_program(machine: str = "") -> bytes:
    """Build the filter for this process, which may have its own threads and files, as BPF instructions.

    Raises OSError as `filter_program` does.
    """
    architecture, calls, (fcntl, ioctl, prlimit) = _table(machine, _MACHINES)
    more, (clone, clone3, prctl, tgkill), _ = _table(machine, _ENGINE_MACHINES)
    judged = [
        (fcntl, 1, (*_FCNTL_COMMANDS, *_FCNTL_LOCKS)), (ioctl, 1, _IOCTL_REQUESTS), (prlimit, 0, (0,)),
        (prctl, 0, (_PR_SET_NAME,)), (tgkill, 0, (os.getpid(),)),
    ]  # fmt: skip
    threads = [
        (_BPF_EQUALS, 0, 1, clone3), (_BPF_RETURN, 0, 0, _UNKNOWN),  # its flags cannot be seen; the C library then takes the other one
        (_BPF_EQUALS, 0, 4, clone),
        (_BPF_LOAD, 0, 0, _ARGUMENTS_AT), (_BPF_HAS_BITS, 0, 1, _CLONE_THREAD),
        (_BPF_RETURN, 0, 0, _ALLOW), (_BPF_RETURN, 0, 0, _REFUSE),
    ]  # fmt: skip
    return _assemble(architecture, calls | more, judged, threads)


def _table(machine: str, tables: Mapping[str, CallTable]) -> CallTable:
    machine = machine or platform.machine()
    if machine not in tables:
        raise OSError(f"no system-call table for {machine}")
    return tables[machine]


def _assemble(
    architecture: int,
    calls: Mapping[str, int],
    conditional: Iterable[ConditionalCall],
    extra_rules: Iterable[Instruction] = (),
) -> bytes:
    """Assemble a filter that allows these calls, and others with certain values of one argument."""
    code: list[Instruction] = [
        (_BPF_LOAD, 0, 0, _ARCHITECTURE_AT), (_BPF_EQUALS, 1, 0, architecture), (_BPF_RETURN, 0, 0, _KILL), (_BPF_LOAD, 0, 0, _NUMBER_AT),
    ]  # fmt: skip
    if architecture == _MACHINES["x86_64"][0]:
        code += [(_BPF_AT_LEAST, 0, 1, _X32), (_BPF_RETURN, 0, 0, _KILL)]
    for number in calls.values():
        code += [(_BPF_EQUALS, 0, 1, number), (_BPF_RETURN, 0, 0, _ALLOW)]
    code += extra_rules
    for call, argument, allowed in conditional:
        code += _allow_only_with(call, argument, allowed)
    code.append((_BPF_RETURN, 0, 0, _REFUSE))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _allow_only_with(number: int, argument: int, allowed: tuple[int, ...]) -> list[Instruction]:
    """Allow one call, but only with these values in the low half of one argument.

    The kernel reads only that half of these arguments.
    """
    tests = [step for value in allowed for step in ((_BPF_EQUALS, 0, 1, value), (_BPF_RETURN, 0, 0, _ALLOW))]
    body = [(_BPF_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument), *tests, (_BPF_RETURN, 0, 0, _REFUSE)]
    return [(_BPF_EQUALS, 0, len(body), number), *body]


def _prctl(option: int, *arguments: int | ctypes.Array[ctypes.c_char] | object) -> None:
    if _libc.prctl(option, *arguments):
        raise OSError(ctypes.get_errno(), f"prctl({option}) was refused")


def install_filter(instructions: bytes) -> None:
    """Install a filter for this process, permanently.

    Raises OSError if that fails.
    """
    filter = _Program(len(instructions) // 8, instructions)
    _prctl(_PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    _prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(filter))


def install_filter_for_threads(instructions: bytes) -> None:
    """Install a filter for all threads of this process and those they start, permanently.

    Raises OSError if that fails.
    """
    filter = _Program(len(instructions) // 8, instructions)
    _prctl(_PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    call = _table("", _ENGINE_MACHINES)[2]
    set_filter, for_all_threads = ctypes.c_ulong(1), ctypes.c_ulong(1)
    if refused := _libc.syscall(ctypes.c_long(call), set_filter, for_all_threads, ctypes.byref(filter)):
        why = os.strerror(ctypes.get_errno()) if refused < 0 else f"thread {refused} has a filter of its own"
        raise OSError(f"the filter of system calls was refused: {why}")


def switch_user(user: int) -> None:
    """Switch permanently to another user, without supplementary groups.

    Only root can. Raises OSError if that fails.
    """
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def hide_memory() -> None:
    """Prevent other processes of this user from opening this one's memory or tracing it.

    A fork inherits that.
    """
    _prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(0))


def die_with(parent: int) -> None:
    """Kill this process when its parent ends.

    `parent` is the process id of the parent.
    """
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(9))
    if os.getppid() != parent:
        os._exit(1)  # the parent ended before the request
