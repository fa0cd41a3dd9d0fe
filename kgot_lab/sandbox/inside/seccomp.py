"""A system-call filter for the process that runs one statement: what Python and NetworkX need, and nothing else.

An allow-list, because a list of what is forbidden ages: every call not named here fails with EPERM. So there are no processes or
threads, no signals, no sockets, no shared memory, no new files, and no reaching into the worker. The wrong architecture, and the x32
calls, end the process. Numbers from the kernel's own tables: arch/x86/entry/syscalls/syscall_64.tbl and, for aarch64, which was not
run here, include/uapi/asm-generic/unistd.h.
Runs inside the sandbox: imports the standard library only.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_X86_64 = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10,
    "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17, "pwrite64": 18, "readv": 19,
    "writev": 20, "access": 21, "pipe": 22, "select": 23, "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "dup2": 33,
    "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "exit": 60, "uname": 63, "getdents": 78,
    "getcwd": 79, "chdir": 80, "readlink": 89, "umask": 95, "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99,
    "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110, "getpgrp": 111, "getgroups": 115,
    "getpgid": 121, "getsid": 124, "rt_sigpending": 127, "sigaltstack": 131, "getpriority": 140, "gettid": 186, "time": 201,
    "futex": 202, "sched_getaffinity": 204, "getdents64": 217, "restart_syscall": 219, "fadvise64": 221, "clock_gettime": 228,
    "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "openat": 257, "newfstatat": 262, "readlinkat": 267,
    "faccessat": 269, "pselect6": 270, "ppoll": 271, "dup3": 292, "pipe2": 293, "getcpu": 309, "getrandom": 318, "statx": 332,
    "close_range": 436, "faccessat2": 439,
}  # fmt: skip
_AARCH64 = {
    "getcwd": 17, "dup": 23, "dup3": 24, "faccessat": 48, "chdir": 49, "openat": 56, "close": 57, "pipe2": 59, "getdents64": 61,
    "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "pread64": 67, "pwrite64": 68, "pselect6": 72, "ppoll": 73,
    "readlinkat": 78, "newfstatat": 79, "fstat": 80, "exit": 93, "exit_group": 94, "futex": 98, "nanosleep": 101, "getitimer": 102,
    "setitimer": 103, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115, "sched_getaffinity": 123, "sched_yield": 124,
    "restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigpending": 136, "rt_sigreturn": 139,
    "getpriority": 141, "times": 153, "getpgid": 155, "getsid": 156, "getgroups": 158, "uname": 160, "getrlimit": 163,
    "getrusage": 165, "umask": 166, "getcpu": 168, "gettimeofday": 169, "getpid": 172, "getppid": 173, "getuid": 174, "geteuid": 175,
    "getgid": 176, "getegid": 177, "gettid": 178, "sysinfo": 179, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222,
    "fadvise64": 223, "mprotect": 226, "madvise": 233, "getrandom": 278, "statx": 291, "close_range": 436, "faccessat2": 439,
}  # fmt: skip
# architecture token, allowed calls, and the numbers of fcntl, ioctl and prlimit64, whose arguments decide
_MACHINES = {"x86_64": (0xC000003E, _X86_64, (72, 16, 302)), "aarch64": (0xC00000B7, _AARCH64, (25, 29, 261))}
# DUPFD, GETFD, SETFD, GETFL, SETFL, DUPFD_CLOEXEC, GETPIPE_SZ; not SETOWN and SETSIG, which could signal the worker
_FCNTL = (0, 1, 2, 3, 4, 1030, 1032)
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451)  # TCGETS, TIOCGWINSZ, FIONREAD, FIONCLEX, FIOCLEX
_X32 = 0x40000000

_LOAD, _EQUALS, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_RET|K
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050001  # the last one is ERRNO with EPERM
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16  # offsets in struct seccomp_data
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def program(machine: str = "") -> bytes:
    """The filter as BPF instructions for a machine, this one by default; raises OSError for one without a table."""
    machine = machine or platform.machine()
    if machine not in _MACHINES:
        raise OSError(f"no system-call table for {machine}")
    architecture, calls, (fcntl, ioctl, prlimit) = _MACHINES[machine]
    code = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUALS, 1, 0, architecture), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER_AT)]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    for number in calls.values():
        code += [(_EQUALS, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for number, argument, allowed in ((fcntl, 1, _FCNTL), (ioctl, 1, _IOCTL), (prlimit, 0, (0,))):
        code += _only_with(number, argument, allowed)
    code.append((_RETURN, 0, 0, _REFUSE))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _only_with(number: int, argument: int, allowed: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Allow one call, but only with these values in the low half of one argument (the kernel reads no more of these)."""
    tests = [step for value in allowed for step in ((_EQUALS, 0, 1, value), (_RETURN, 0, 0, _ALLOW))]
    body = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument), *tests, (_RETURN, 0, 0, _REFUSE)]
    return [(_EQUALS, 0, len(body), number), *body]


def _prctl(option: int, *arguments: int | ctypes.Array[ctypes.c_char] | object) -> None:
    if _libc.prctl(option, *arguments):
        raise OSError(ctypes.get_errno(), f"prctl({option}) was refused")


def confine(instructions: bytes) -> None:
    """Put this process, for good, under a filter; raises OSError."""
    filter = _Program(len(instructions) // 8, instructions)
    _prctl(_PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    _prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(filter))


def become(user: int) -> None:
    """Be another user for good, in no group but that user's own; only root can. Raises OSError."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def hide_memory() -> None:
    """Let no other process of this user open this one's memory or trace it; a fork inherits that."""
    _prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(0))


def die_with(parent: int) -> None:
    """End this process when the one that started it ends; `parent` is that one's process id."""
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(9))
    if os.getppid() != parent:
        os._exit(1)  # it ended before we asked
