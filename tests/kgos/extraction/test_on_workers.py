"""A folder read by the workers of a Dask scheduler, named by its address: the graph is the one that a single
process reads.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.workers import local_cluster

import kgot_lab
from kgot_lab.errors import BadInput, LabError
from kgot_lab.io.dask_workers import dask_client
from kgot_lab.kgos.extraction import file_facts as one_file
from kgot_lab.kgos.extraction.file_facts import (
    SourceFile,
    extract_batch,
    extract_file,
    extraction_version,
    split_batches,
)
from kgot_lab.kgos.extraction.folder import extract_folder

TEXTS = Path(kgot_lab.__file__).parent / "text"  # some twenty files


@pytest.fixture(scope="module", params=["threads", "processes"])
def client(request):
    processes = request.param == "processes"
    with local_cluster(processes=processes) as cluster, dask_client(cluster.scheduler_address) as client:
        yield client


@pytest.fixture
def odd(tmp_path):
    """A folder with a file of each kind, some of which cannot be read."""
    files = {
        "a.py": b"def f():\n    return g()\n\ndef g():\n    return 1\n",
        "b.py": b"from a import f\nf()\n",
        "broken.py": b"def f(:\n",
        "odd.py": b"# \xff\xfe\n",
        "notes.md": b"# Notes\n\nOf `f` in a.py.\n",
        "empty.json": b"",
        "bad.json": b'{"a": ',
        "app.js": b"export function h() { return 1 }\n",
        "set.toml": b"[tool]\nname = 'x'\n",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.mark.extended
def test_workers_read_the_graph_that_one_process_reads(client, odd):
    counts = []
    note = lambda done, total, path: counts.append((done, total))  # noqa: E731
    for folder in (TEXTS, odd):  # in the latter are files that cannot be read
        there = extract_folder(folder, cache=False, client=client, progress=note)
        here = extract_folder(folder, cache=False)
        assert there.graph.digest == here.graph.digest and there.describe(None) == here.describe(None)
        assert counts == sorted(counts) and counts[-1][0] == counts[-1][1]
        counts.clear()
    assert here.skipped


def test_what_workers_read_is_kept_and_only_what_changed_is_sent_again(client, odd, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    first = extract_folder(odd, cache=cache, client=client)
    (odd / "a.py").write_text("def f():\n    return 2\n")
    again = extract_folder(odd, cache=cache, client=client)
    assert first.reused == 0 and (again.read, again.reused) == (1, first.read - 1)
    assert again.graph.digest == extract_folder(odd, cache=False).graph.digest


def test_an_interruption_keeps_what_workers_read(client, odd, tmp_path_factory, monkeypatch):
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(one_file, "MAX_BATCH_FILES", 2)

    def stop_later(done, total, path):
        if done >= 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract_folder(odd, cache=cache, client=client, progress=stop_later)
    assert extract_folder(odd, cache=cache).reused >= 2


def test_a_worker_with_other_code_is_refused():
    files = [SourceFile("a.py", b"x = 1\n", "a")]
    assert extract_batch(extraction_version(), files) == [extract_file(files[0])]
    with pytest.raises(LabError, match="another version"):
        extract_batch(b"other", files)


def test_a_file_whose_parser_is_missing_at_a_worker_is_read_by_who_asks(client, odd, monkeypatch):
    read, missing = one_file.extract_file, []

    def lacking(file):  # which workers that are threads run too
        if file.path == "app.js" and not missing:
            missing.append(file)
            raise one_file.NotInstalled("code")
        return read(file)

    monkeypatch.setattr(one_file, "extract_file", lacking)
    assert "app.js#h" in extract_folder(odd, cache=False, client=client).graph


def test_files_go_in_lots_of_so_many_files_and_bytes_at_most():
    files = [SourceFile(f"{n}.md", b"x" * (1_500_000 if n == 20 else 1)) for n in range(40)]
    lots = split_batches(files)
    assert [file for lot in lots for file in lot] == files
    assert max(map(len, lots)) == one_file.MAX_BATCH_FILES
    assert all(sum(len(file.data) for file in lot) <= one_file.MAX_BATCH_BYTES for lot in lots)
    with pytest.raises(BadInput):
        extract_file(SourceFile("broken.py", b"def f(:\n", "broken"))
