"""Damaged files: whatever one holds, its reader gives what it read or one of our errors, in time, little
memory and its folder.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from support.office import docx, pdf
from support.waiting import AMPLE
from support.zips import zip_of

from faults.counting import Counts, forget_peak, peak_mb
from kgot_lab.documents.archives import unpacked, zip_members
from kgot_lab.documents.files import ConvertLimits, process_converter, read_document_text
from kgot_lab.documents.folder import read_documents
from kgot_lab.documents.structure import read_sections
from kgot_lab.errors import LabError
from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.trace import load_run
from kgot_lab.stores.files import read_graph, write_graph
from kgot_lab.types import Edge, Node

LIMITS = ConvertLimits(seconds=5.0, seconds_a_megabyte=0.0)
_MOST_MB = 500  # of this process, more than before
_TRACE = Path(__file__).parents[2] / "data" / "traces" / "winter_storm.jsonl"
_GRAPH = PropertyGraph.of(
    [
        Node("Ada", ("Person",), {"born": 1815, "tags": ["maths", None, {"a": 1.5}]}),
        Node("London", ("City", "Place")),
    ],
    [Edge("Ada", "born in", "London", {"sure": True}), Edge("Ada", "born in", "London", {}, "2")],
)
_PAGE = b"""<!DOCTYPE html><html><head><meta charset="utf-8"><title>Tea</title></head><body><h1>Tea &amp; cake</h1>
<table><tr><td>a<td>b</table><ul><li>x<ul><li>y</ul></ul><a href="http://x/y">z</a><img src="data:,x"><pre>code</pre></body></html>"""
_TOKENS = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"%s%n", b"\r",
    b"\n" * 1_000, b" " * 10_000, b"[" * 5_000, b"{" * 5_000, b'"', b"\\",
    b"\\ud800", b"1e400", b"-0", b"NaN", b"9" * 5_000, b"<a>" * 5_000, b"<!--", b"]]>", b"&lol;", b"&#xD800;", b"&#0;", b"<![CDATA[",
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>', b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>',
    b"charset=idna", b"charset=utf-7", b"```\n", b"# " + b"#" * 5_000, b"| a " * 3_000,
    b"*" * 5_000, b"](" * 3_000, b"endobj", b"stream\n", b"/Kids[3 0 R]",
    b"/Length 999999999", b"<< /Type /Pages /Parent 2 0 R >>", b"PK\x05\x06", b"PK\x01\x02", b"../../x", b"\x1b[2J", "\u202e".encode(),
    b"@prefix : <x> .", b"<http://x> ", b'"a"^^<x>', b"_:b",
)  # fmt: skip
_LONGEST = 2_000_000  # bytes of a damaged file


@cache
def seeds() -> Mapping[str, bytes]:
    """A small whole file of each kind, by its name."""
    found = {
        "a.pdf": pdf("Rivers run to the sea."), "a.docx": docx("Minutes", "The board met."), "a.pptx": _slides(), "a.xlsx": _sheet(),
        "a.html": _PAGE, "a.md": b"# Moon\n\nThe moon is far.\n\n```sh\n# no\n```\n| a | b |\n|---|---|\n",
        "a.csv": b'name,age\n"Ada, L",36\n',
        "a.json": b'{"name": ["Ada", 1.5, null, {"x": "\\u00e9"}]}', "a.xml": b"<?xml version='1.0'?><a b='c'>d<e/></a>",
        "a.txt": "Naïve café.".encode(),
        "a.zip": zip_of({"x.txt": "text", "in/y.txt": "more"}),
        "a.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": ["1"], "outputs": []}], "nbformat": 4}).encode(),
        "trace.jsonl": _TRACE.read_bytes(),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for name in ("g.json", "g.graphml", "g.ttl"):
            write_graph(_GRAPH, Path(folder) / name)
            found[name] = (Path(folder) / name).read_bytes()
    return found


def _slides() -> bytes:
    import pptx

    made, out = pptx.Presentation(), io.BytesIO()
    slide = made.slides.add_slide(made.slide_layouts[0])
    slide.shapes.title.text = "Tides"
    made.save(out)
    return out.getvalue()


def _sheet() -> bytes:
    import openpyxl

    made, out = openpyxl.Workbook(), io.BytesIO()
    made.active["A1"], made.active["B2"] = "lamps", 7
    made.save(out)
    return out.getvalue()


# --- damage ---


def damaged(data: bytes, chance: random.Random) -> bytes:
    """A file with some damage; a file of Office or a zip file may be damaged inside and packed again."""
    if data.startswith(b"PK") and chance.random() < 0.6:
        return _repacked(data, chance)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        data = chance.choice(_DAMAGES)(data, chance)[:_LONGEST]
    return data


def _flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _without(data: bytes, chance: random.Random) -> bytes:
    a, b = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:a] + data[b:]


def _again(data: bytes, chance: random.Random) -> bytes:
    a, b = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:b] + data[a:b] * chance.choice((1, 2, 50)) + data[b:]


def _token(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_TOKENS) + data[at:]


def _number(data: bytes, chance: random.Random) -> bytes:
    numbers = list(re.finditer(rb"\d+", data))
    if not numbers:
        return data
    which = chance.choice(numbers)
    number = chance.choice((b"0", b"-1", b"4294967295", b"99999999999999999999", b"1e9", b"x"))
    return data[: which.start()] + number + data[which.end() :]


def _spliced(data: bytes, chance: random.Random) -> bytes:
    other = chance.choice(list(seeds().values()))
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other)) :]


_DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip,
    _flip,
    _cut,
    _without,
    _again,
    _token,
    _token,
    _number,
    _spliced,
)


def _repacked(data: bytes, chance: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = chance.choice(list(members))
    done = damaged(members.pop(name), chance) if chance.random() < 0.9 else b""
    name = chance.choice((name, name, name, name, "../" + name, "/tmp/" + name, name.upper(), "x" * 300))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, inside in {**members, name: done}.items():
            archive.writestr(each, inside)
    return out.getvalue()


# --- reading ---


def _read(path: Path) -> None:
    """Read a file in each way that takes its kind."""
    if path.name.startswith("g."):
        graph = read_graph(path)
        assert len(graph.nodes) == len(graph.ids)
    elif path.name.startswith("trace"):
        load_run(path)
    elif path.suffix == ".zip":
        zip_members(path)
        unpacked(path, path.parent / "unpacked")
    else:
        text = read_document_text(path).text
        assert text.strip()
        text.encode()
        [section.passages() for section in read_sections(text, ".md", "name")]


def fault_of(name: str, data: bytes) -> str:
    """What is wrong with how a damaged file is read; "" if nothing is."""
    process_converter(os.getpid()).limits = LIMITS
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "folder"
        folder.mkdir()
        (folder / name).write_bytes(data)
        (folder / "good.txt").write_text("Good.")
        forget_peak()
        before, begun = peak_mb(), time.monotonic()
        for read in (lambda: _read(folder / name), lambda: read_documents(folder)):
            try:
                read()
            except LabError as error:
                if not str(error).strip() or len(str(error)) > 3_000 or "Traceback" in str(error):
                    return f"an error of {len(str(error))} characters"
                if read.__code__.co_names[:1] == ("read_documents",):
                    return "one file stops a folder"
            except BaseException as error:
                return f"{type(error).__name__}: {str(error)[:120]}"
        if time.monotonic() - begun > 2 * LIMITS.seconds + AMPLE:
            return f"takes {time.monotonic() - begun:.0f} s"
        if peak_mb() - before > _MOST_MB:
            return f"takes {peak_mb() - before:.0f} MB"
        left = {path.name for path in Path(top).iterdir()} - {"folder"}
        return f"writes {left} outside of the folder" if left else ""


def cases(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Damaged files without end, of all kinds in turn."""
    while True:
        for name, data in seeds().items():
            yield name, damaged(data, chance)


def smallest(name: str, data: bytes, wrong: str) -> bytes:
    """Less of a damaged file that is read as wrongly, found by leaving out halves, quarters and so on."""
    step = len(data) // 2
    while step >= 1 and len(data) > 1:
        for at in range(0, len(data), step):
            less = data[:at] + data[at + step :]
            if fault_of(name, less)[:40] == wrong[:40]:
                data = less
                break
        else:
            step //= 2
    return data


def run(seconds: float, seed: int) -> Counts:
    """Damaged files for so long."""
    end, count, faults = time.monotonic() + seconds, 0, dict[str, str]()
    for name, data in cases(random.Random(seed)):
        if time.monotonic() > end:
            break
        count += 1
        wrong = fault_of(name, data)
        kind = f"{name}: {re.sub(r'[0-9]+', '0', wrong)[:60]}"
        if wrong and kind not in faults:
            short = len(data) < 2_000 and "takes" not in wrong
            faults[kind] = repr(smallest(name, data, wrong) if short else data[:500])
    return Counts(count, faults)
