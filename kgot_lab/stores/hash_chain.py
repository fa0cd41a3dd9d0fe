"""The lines of a log: a hash chain of records, and two marks that say how many records are on disk.

The head comes first, then two marks, then a line for each record: the check (of this line and the one
before), a space and JSON. A mark is written once its record is on disk, the two alternately, so that a torn
one leaves the other.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.errors import BadInput, StoreDamaged
from kgot_lab.types import Json

SALVAGE_ADVICE = "restore a copy, or keep what is whole: kgot-lab doctor --salvage"
_FORMAT = "kgot_lab diff log"
_VERSION = 2
_FIRST_HEAD = b'7c39a82d {"format":"kgot_lab diff log","version":1}'  # of version 1, without a chain
_CHECK_DIGITS = 16  # of a check
_MARK = re.compile(rb"mark (\d{12}) ([0-9a-f]{16}) ([0-9a-f]{8})\n")
MARK_SIZE = len(b"mark 000000000000 0123456789abcdef 01234567\n")


def format_record(record: Json, previous_check: bytes) -> bytes:
    """Format a record, which is JSON, as the line that follows the line with the check `previous_check`."""
    text = json.dumps(record, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()
    return b"%s %s\n" % (_compute_check(text, previous_check), text)


def read_check(line: bytes) -> bytes:
    """Return the check that a line begins with."""
    return line.partition(b" ")[0]


def _compute_check(text: bytes, previous_check: bytes) -> bytes:
    return hashlib.sha256(previous_check + b" " + text).hexdigest()[:_CHECK_DIGITS].encode()


# --- lines of JSON that other programs read too ---

_SEAL = re.compile(r',"check":"([0-9a-f]{16})"\}$')


def append_seal(line: str, previous_seal: str) -> str:
    """Append a check of the line and of all lines before it to a JSON object.

    `previous_seal` is the seal of the previous line.
    """
    return f'{line[:-1]},"check":"{_compute_seal(line, previous_seal)}"}}'


def line_seal(line: str) -> str:
    """Return the value that the next line is checked against.

    It is the check in the line, or one computed from a line without a check.
    """
    match = _SEAL.search(line)
    return match[1] if match else _compute_seal(line, "")


def first_broken_seal(lines: Iterable[str]) -> int:
    """Return the number of the first line with a wrong or missing check, or 0.

    A check is missing only after lines that have one. Old files have none.
    """
    previous_seal, is_sealed = "", False
    for number, line in enumerate(lines, start=1):
        match = _SEAL.search(line)
        has_wrong_seal = match and match[1] != _compute_seal(line[: match.start()] + "}", previous_seal)
        if (is_sealed and not match) or has_wrong_seal:
            return number
        previous_seal, is_sealed = line_seal(line), is_sealed or bool(match)
    return 0


def _compute_seal(line: str, previous_seal: str) -> str:
    return hashlib.sha256(f"{previous_seal} {line}".encode()).hexdigest()[:_CHECK_DIGITS]


# --- marks ---


def format_mark(count: int, check: bytes) -> bytes:
    """Format the mark that records `count` records on disk, the last of which has this check."""
    body = b"%012d %s" % (count, check)
    return b"mark %s %08x\n" % (body, zlib.crc32(body))


def mark_offset(count: int) -> int:
    """Return the offset in the file of the mark for `count` records."""
    return len(HEAD) + MARK_SIZE * (count % 2)


HEAD = format_record({"format": _FORMAT, "version": _VERSION}, b"")
EMPTY_LOG = HEAD + 2 * format_mark(0, read_check(HEAD))  # a log without records


@dataclass(frozen=True)
class Chain:
    """The contents of a log: valid records, their size in bytes, and the check of the last.

    `lost` describes what was on disk once and is missing or damaged, or is "". `torn` describes what follows
    the valid part and was never on disk.
    """

    records: tuple[Mapping[str, Json], ...]
    size: int
    check: bytes
    lost: str = ""
    torn: str = ""


def read_chain(data: bytes, path: Path) -> Chain:
    """Parse the bytes of a log.

    Raises BadInput if they are no log, and StoreDamaged if the head is missing.
    """
    size = len(EMPTY_LOG)
    if not data.startswith(HEAD) or len(data) < size:
        return _read_headless(data, path)
    check, records = read_check(data), list[Mapping[str, Json]]()
    checks = [check]
    while (end := data.find(b"\n", size)) >= 0:
        record = _parse_record(data[size:end], check)
        if record is None:
            break
        records.append(record)
        check = read_check(data[size:end])
        checks.append(check)
        size = end + 1
    lost, torn = _describe_loss(data, checks), ""
    if not lost and size < len(data):
        lost, torn = _classify_rest(data[size:], len(records))
    return Chain(tuple(records), size, check, lost, torn)


def salvage_records(data: bytes, path: Path) -> tuple[tuple[Mapping[str, Json], ...], int]:
    """Return the unbroken run of records of a damaged log, and how many were apparently written.

    In a chain, a line that is no record (such as a second head) is skipped, because the check of the next
    shows that none is missing. Raises BadInput if the data is no log of this package.
    """
    if not data.startswith(HEAD):
        with suppress(StoreDamaged):
            _read_headless(data, path)
    marked_count = max((int(mark[1]) for mark in _MARK.finditer(data[: 2 * len(EMPTY_LOG)])), default=0)
    # a mark may have lost its line end
    starts = (data, data[len(EMPTY_LOG) :])
    records, unread_count = max(map(_chained_records, starts), key=lambda found: len(found[0]))
    return records, max(len(records) + unread_count, marked_count)


def _chained_records(data: bytes) -> tuple[tuple[Mapping[str, Json], ...], int]:
    """Return the unbroken run of records from the first on, and the number of other lines like records."""
    check, records, unread_count = read_check(HEAD), list[Mapping[str, Json]](), 0
    for line in data.split(b"\n"):
        record = _parse_record(line, check)
        if record is not None:
            records.append(record)
            check = read_check(line)
        elif b'{"nodes":' in line[: 4 * _CHECK_DIGITS]:
            unread_count += 1
    return tuple(records), unread_count


def _read_headless(data: bytes, path: Path) -> Chain:
    if not data:
        return Chain((), 0, b"")
    if EMPTY_LOG.startswith(data):
        torn = "it ended within its head, so it held no record, or has lost all of them"
        return Chain((), 0, b"", torn=torn)
    start = data[: len(EMPTY_LOG)]
    line = start.partition(b"\n")[0]
    record = _parse_record(line, b"") if _FORMAT.encode() in start else None
    if line == _FIRST_HEAD or (record is not None and record.get("version") != _VERSION):
        raise BadInput(f"{path}: a log of another version: {line.decode()[:100]}")
    if _FORMAT.encode() in start or _MARK.search(start):
        problem = f"{path}: the head of this log is damaged, so it was not touched"
        raise StoreDamaged(f"{problem}: {SALVAGE_ADVICE} {path}")
    raise BadInput(f"{path}: not a diff log, so it was not touched; give another path")


def _parse_record(line: bytes, previous_check: bytes) -> Mapping[str, Json] | None:
    check, _, text = line.partition(b" ")
    if check != _compute_check(text, previous_check):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _describe_loss(data: bytes, checks: list[bytes]) -> str:
    """Describe what the marks promise that is missing, or return ""."""
    marks = [_MARK.fullmatch(data[start : start + MARK_SIZE]) for start in (mark_offset(0), mark_offset(1))]
    valid_marks = [(int(m[1]), m[2]) for m in marks if m and m[0] == format_mark(int(m[1]), m[2])]
    if not valid_marks:
        return "its marks are damaged, so records may be missing at its end"
    count, check = max(valid_marks)
    read_count = len(checks) - 1
    if count > read_count:
        return f"of {count:,} records that were put on the disk only the first {read_count:,} are whole"
    return "" if checks[count] == check else f"its record {count:,} is not the one that was put on the disk"


def _classify_rest(rest: bytes, read_count: int) -> tuple[str, str]:
    """Classify what follows the valid lines of a log as (lost, torn).

    The log has all records that its marks promise.
    """
    end = rest.find(b"\n")
    if end < 0 or not rest[end + 1 :].strip(b"\x00\n"):
        cause = "a write that did not end, or damage to the last one"
        return "", f"it ended in record {read_count + 1:,}, which was cut off: {cause}"
    return f"its record {read_count + 1:,} is damaged and others follow it", ""
