"""Whether every edge of real graph files of other programs' tests is read, or the file is refused with a reason.

python -m benchmarks.graph_files.read_files FOLDER

FOLDER has the files of benchmarks/results/graph_files/files.jsonl as OWNER+NAME/PATH, from the repositories at
the commits that the list names; a file with another checksum is not read. Nothing is fetched. Edges are counted
in each file apart from the reader: tags, lines, entries of lists, triples. Figures go to
benchmarks/results/graph_files: a row a file in read.jsonl, a table by form in read.md.
"""

import argparse
import bz2
import csv
import gzip
import hashlib
import io
import json
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyoxigraph

from kgot_lab.errors import LabError
from kgot_lab.stores.files import read_named_graph

RESULTS = Path(__file__).parents[1] / "results" / "graph_files"
ENDS = [
    {"source", "target"}, {"from", "to"}, {"start", "end"}, {"_inV", "_outV"},
]  # fmt: skip
RDF_NS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
NO_EDGES = {RDF_NS + name for name in ("type", "subject", "predicate", "object")}
Row = dict[str, Any]


def unpacked(data: bytes) -> bytes:
    """The data of a file, decompressed."""
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"BZh"):
        return bz2.decompress(data)
    if data.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(archive.namelist()[0])
    return data


def tags(text: str) -> int:
    """The <edge> elements of XML that have ends of their own."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    return len(re.findall(r"<(?:\w+:)?edge\s(?=[^>]*\bsource\s*=)", text))


def gml(text: str) -> int:
    """The blocks `edge [` of GML."""
    return len(re.findall(r"(?m)^\s*edge\s*\[|[\]\s]edge\s*\[", re.sub(r'"[^"]*"', '""', text)))


def pajek(text: str) -> int:
    """The lines, or the neighbours in lines, after *Arcs and *Edges."""
    section, edges = "", 0
    for line in text.splitlines():
        words = [] if line.startswith("%") else line.split()
        if words and words[0].startswith("*"):
            section = words[0].lower()
        elif words and section in ("*arcs", "*edges"):
            edges += 1
        elif words and section in ("*arcslist", "*edgeslist"):
            edges += len(words) - 1
    return edges


def lines(text: str) -> int:
    """The lines that are no remarks; the first of a sparse matrix has its size, unless a remark has it."""
    found = sum(bool(line.strip()) and line.strip()[0] not in "#%" for line in text.splitlines())
    return found - (text.startswith("%%MatrixMarket") and not re.search(r"(?m)^%\s*\d+ \d+ \d+\s*$", text))


def rows(text: str) -> int:
    """The rows of a table below its head."""
    return sum(any(map(str.strip, row)) for row in csv.reader(text.splitlines())) - 1


def objects(text: str) -> int:
    """The objects in JSON with two ends, or APOC's relationships, and the entries of lists of neighbours."""
    try:
        values = [json.loads(text)]
    except ValueError:
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
    return sum(1 for value in values for _ in edges_in(value))


def edges_in(value: object) -> Iterator[object]:
    """The objects with two ends in a value."""
    if isinstance(value, list):
        for each in value:
            yield from edges_in(each)
    elif isinstance(value, dict):
        if any(ends <= value.keys() and None not in map(value.get, ends) for ends in ENDS):
            yield value
        else:
            for each in value.values():
                yield from edges_in(each)


def triples(text: str, form: str) -> int:
    """The distinct triples whose object is a thing, except types and parts of reified facts."""
    return len(
        {
            (quad.subject, quad.predicate, quad.object)
            for quad in pyoxigraph.parse(
                input=text, format=getattr(pyoxigraph.RdfFormat, form), base_iri="file:///x"
            )
            if not isinstance(quad.object, pyoxigraph.Literal) and quad.predicate.value not in NO_EDGES
        }
    )


def parquet(data: bytes) -> int:
    """The rows of a Parquet table."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(io.BytesIO(data)).num_rows)


RDF = {
    "Turtle": "TURTLE", "TriG": "TRIG", "N-Triples": "N_TRIPLES", "N-Quads": "N_QUADS", "RDF/XML": "RDF_XML",
    "JSON-LD": "JSON_LD",
}  # fmt: skip
COUNTS: dict[str, Callable[[str], int]] = {
    "GraphML": tags, "GEXF": tags, "XGMML": tags, "GML": gml, "Pajek": pajek, "edge list": lines,
    "sparse matrix": lines, "edge table": rows, "node table": lambda text: 0, "JSON": objects,
}  # fmt: skip


def edges_of(form: str, data: bytes) -> int | None:
    """The edges in a file of a form, or None if they cannot be counted so."""
    try:
        if form.endswith("Parquet"):
            return parquet(data) if form.startswith("edge") else 0
        text = unpacked(data).decode("utf-8-sig", "replace")
        if form in RDF:
            return triples(text, RDF[form])
        return COUNTS[form](text) if form in COUNTS else None
    except (ImportError, ValueError, SyntaxError, OSError, csv.Error):
        return None


def read(entry: Row, folder: Path) -> Row:
    """What the reader makes of a file, and its edges counted apart."""
    path = folder / entry["repository"].replace("/", "+") / entry["path"]
    row = {name: entry[name] for name in ("form", "repository", "path")}
    if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
        return row | {"verdict": "not here"}
    row["edges in the file"] = edges_of(entry["form"], path.read_bytes())
    try:
        named = read_named_graph(path)
    except LabError as error:
        reason = str(error).replace(str(path), "").lstrip(": ,")
        return row | {"verdict": "refused", "reason": reason[:110]}
    told = re.search(r"left out: .*?([\d,]+) edges?\b", named.note)
    row["nodes"], row["edges"] = len(named.graph), len(named.graph.edges)
    row["told as left out"] = int(told[1].replace(",", "")) if told else 0
    row["summary"] = named.summary.replace(str(path), "")[:150]
    there, seen = row["edges in the file"], row["edges"] + row["told as left out"]
    row["verdict"] = "not counted" if there is None else "all edges" if there == seen else "edges lost"
    if there is not None and seen > there:
        row["verdict"] = "edges that are none"
    return row


def _is_read(form: str) -> bool:
    """Whether a form is one that the reader knows; the others are to be refused."""
    return form in COUNTS or form in RDF or form.endswith("Parquet")


def table(found: list[Row]) -> str:
    """The table of verdicts by form."""
    verdicts = ["all edges", "refused", "edges lost", "edges that are none", "not counted", "not here"]
    by_form: dict[str, Counter[str]] = defaultdict(Counter)
    for row in found:
        by_form[row["form"]][row["verdict"]] += 1
        by_form["all"][row["verdict"]] += 1
    shown = [
        f"| {form}{note} | {counts.total()} | {' | '.join(str(counts[each]) for each in verdicts)} |"
        for form, counts in sorted(
            by_form.items(), key=lambda item: (item[0] == "all", not _is_read(item[0]), item[0].lower())
        )
        for note in ["" if _is_read(form) or form == "all" else " (not read)"]
    ]
    edges = sum(row.get("edges", 0) for row in found)
    silent = sum(row["verdict"] in verdicts[2:4] for row in found)
    head = f"| form | files | {' | '.join(verdicts)} |\n|{'---|' * (len(verdicts) + 2)}"
    uncounted = [
        f"- {row['form']}, {row['repository']}, {Path(row['path']).name}: {row['summary']}"
        for row in found
        if row["verdict"] == "not counted"
    ]
    reasons = [
        f"- {row['form']}, {row['repository']}, {Path(row['path']).name}: {row['reason']}"
        for row in found
        if row["verdict"] == "refused"
    ]
    told = f"{edges:,} edges were read; {silent} files with a silent loss."
    other = "Read as another form, and not counted:"
    return "\n".join([head, *shown, "", told, "", other, "", *uncounted, "", "Refused:", "", *reasons, ""])


def main() -> None:
    """Read the files of the list, write a row a file, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder with the files as OWNER+NAME/PATH")
    folder = parser.parse_args().folder
    entries = [json.loads(line) for line in (RESULTS / "files.jsonl").read_text().splitlines()]
    found = [read(entry, folder) for entry in entries]
    (RESULTS / "read.jsonl").write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found), "utf-8"
    )
    text = table(found)
    (RESULTS / "read.md").write_text(
        f"# Graph files of other programs\n\n`python -m benchmarks.graph_files.read_files FOLDER`\n\n{text}",
        "utf-8",
    )
    print(text)


if __name__ == "__main__":
    main()
