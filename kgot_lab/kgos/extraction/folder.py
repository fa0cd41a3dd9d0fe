"""Read a folder of code, settings and prose into a graph. Files that have not changed are taken from the
cache.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from kgot_lab.arguments import check_arguments
from kgot_lab.documents.files import LARGEST_FILE
from kgot_lab.documents.folder import READ_AS_TEXT, Remark, group_remarks
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.dask_workers import DaskClient, run_jobs
from kgot_lab.io.files import read_regular_file
from kgot_lab.io.processes import without_garbage_collection
from kgot_lab.kgos.extraction.facts import (
    PROSE_ENDINGS,
    PYTHON_ENDINGS,
    READ_ENDINGS,
    SCRIPT_ENDINGS,
    SETTINGS_ENDINGS,
    Definition,
    FileFacts,
    ModuleNames,
)
from kgot_lab.kgos.extraction.file_facts import (
    ExtractionCache,
    SourceFile,
    cache_key,
    extract_batch,
    extraction_version,
    facts_or_error,
    split_batches,
)
from kgot_lab.kgos.extraction.linking import describe_calls, link_facts
from kgot_lab.kgos.extraction.python.points_to import solve_calls
from kgot_lab.kgos.extraction.script_names import import_aliases, own_modules
from kgot_lab.kgos.extraction.source_files import list_source_files
from kgot_lab.text.cleaning import format_count

_ENDINGS_TEXT = f"{', '.join(READ_ENDINGS)}, {READ_AS_TEXT}"
# bytes at most
_MANIFEST = re.compile(r"package\.json|[jt]sconfig(\..+)?\.json")  # which tell what imports mean
_MAX_FILE_BYTES = {
    **dict.fromkeys((*PYTHON_ENDINGS, *SCRIPT_ENDINGS, *PROSE_ENDINGS), 20_000_000),
    **dict.fromkeys(SETTINGS_ENDINGS, 5_000_000),
}
_BATCH_SIZE = 64  # files cached together; with workers, files per thread, for at most _MOST_LOTS threads
_MAX_THREADS = 16
# how many of how many files are done, and the next one
FileProgress = Callable[[int, int, str], object]


@check_arguments
@dataclass(frozen=True)
class FolderGraph:
    """The graph of a folder, with the numbers of files read and reused, and the files that were skipped or
    read with doubt.
    """

    graph: PropertyGraph
    files: int
    read: int
    reused: int
    skipped: tuple[Remark, ...] = ()
    doubtful: tuple[Remark, ...] = ()
    calls: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # resolved and all, by language

    def __repr__(self) -> str:
        return self.describe()

    def describe(self, most: int | None = 10) -> str:
        """Summarise the graph, and list files that were skipped or read with doubt.

        At most `most` files are listed; None lists all of them.
        """
        found = Counter(label for labels in self.graph.node_labels for label in labels)
        several = {"class": "classes"}
        kinds = ", ".join(format_count(n, kind, several.get(kind, "")) for kind, n in found.most_common(6))
        came = f"{self.read} read now, {self.reused} unchanged"
        files, skipped = format_count(self.files, "file"), format_count(len(self.skipped), "file")
        lines = [f"<FolderGraph: {files} ({came}), {skipped} skipped>"]
        lines.append(
            f"  {format_count(len(self.graph), 'node')} ({kinds}), {format_count(len(self.graph.edge_keys), 'edge')}"
        )
        if shares := describe_calls(self.calls):
            lines.append(f"  calls resolved: {shares}")
        remarks = [f"  skipped {remark}" for remark in group_remarks(self.skipped)]
        remarks += [f"  note {remark}" for remark in group_remarks(self.doubtful)]
        hidden = 0 if most is None else len(remarks[most:])
        if hidden:
            remarks[most:] = [f"  and {hidden} more: describe(None) names all"]
        return "\n".join([*lines, *remarks])


@check_arguments
def extract_folder(
    folder: str | Path,
    *,
    cache: Path | Literal[False] | None = None,
    progress: FileProgress | None = None,
    client: DaskClient | None = None,
    all_files: bool = False,
) -> FolderGraph:
    """Extract a graph in the vocabulary of code from a folder, or from one file.

    Its nodes are modules, classes, functions, settings and texts. The files are those that `read_documents`
    reads, except build output, minified scripts and what .gitignore names; `all_files` reads these too. `cache`
    is the folder in which facts of files are cached: None for that of the user, False for none. A file that has
    not changed is not read again, and the graph equals that of a full reading. `progress` is called for each
    file. `client` is a Dask client (`kgot_lab.io.dask_workers.dask_client`). Its workers receive the bytes of
    files and need no folder; the graph is the same.

    Raises BadInput if there is no such folder or it has nothing that can be read, and LabError if workers
    fail.
    """
    folder = Path(folder).expanduser()
    if not folder.exists():
        raise BadInput(
            f"{folder} is not a folder, nor a file: give one with code, settings or prose ({_ENDINGS_TEXT})"
        )
    listed = list_source_files(folder, all_files)
    refused = [Remark(file.name, file.refusal) for file in listed if file.refusal]
    files_by_name = {file.name: file.path for file in listed if not file.refusal}
    paths, name = list(files_by_name), folder.resolve().name
    module_paths = [path for path in paths if path.endswith(PYTHON_ENDINGS)]
    names = ModuleNames(module_paths, name if (folder / "__init__.py").is_file() else "")
    extraction_cache = None if cache is False else ExtractionCache(cache)
    reader = _FactsReader(files_by_name, names, extraction_cache, client)
    report = progress or (lambda *_: None)
    with without_garbage_collection():
        files = list(reader.read_files(paths, report))
    if not reader.read + reader.reused:
        left_out = [*refused, *reader.skipped]
        reasons = "; ".join(map(str, group_remarks(left_out)[:5])) or f"it holds no {_ENDINGS_TEXT}"
        raise BadInput(f"nothing in {folder} could be read ({reasons})")
    key = cache_key(name, *reader.keys)
    found = extraction_cache.read_graph(key) if extraction_cache else None
    if found is None:
        report(len(paths), len(paths), "call graph")
        solve = extraction_cache.solve_calls if extraction_cache else solve_calls
        found = link_facts(files, names, name, solve)
        if extraction_cache:
            extraction_cache.store_graph(key, found)
    skipped = tuple(sorted((*refused, *reader.skipped), key=lambda each: each.path))
    return FolderGraph(
        found.graph,
        reader.read + reader.reused,
        reader.read,
        reader.reused,
        skipped,
        tuple(Remark(file.path, file.remark) for file in files if file.remark),
        found.calls,
    )


def folder_fingerprint(folder: Path) -> str:
    """Return a hash that changes when the files to read change.

    It covers the names, sizes, modification times and inodes of the files.
    """
    stamps = []
    for path, name, refusal in list_source_files(folder):
        with suppress(OSError):  # removed meanwhile
            status = path.lstat() if refusal else path.stat()
            stamps.append(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}")
    return cache_key(*stamps).hex()


class _FactsReader:
    """A reader of the facts of files, which takes them from the cache if the bytes are the same."""

    def __init__(
        self, files: Mapping[str, Path], names: ModuleNames, cache: ExtractionCache | None, client: Any = None
    ):
        self.files, self.names, self.kept, self.client = files, names, cache, client
        manifests = {}
        for path in (each for each in files if _MANIFEST.fullmatch(PurePosixPath(each).name)):
            with suppress(OSError):  # which reading it tells
                manifests[path] = read_regular_file(files[path], _MAX_FILE_BYTES[".json"])
        self.modules = own_modules(manifests, files) | import_aliases(manifests, files)
        threads = 1 if client is None else max(1, sum(client.nthreads().values()))
        self.lot = _BATCH_SIZE * min(threads, _MAX_THREADS)
        self.read = self.reused = 0
        self.skipped: list[Remark] = []
        self.keys: list[bytes] = []

    def read_files(self, paths: list[str], progress: FileProgress) -> Iterator[FileFacts]:
        """Yield the facts of each readable file, in the order of the paths."""
        for start in range(0, len(paths), self.lot):
            lot = paths[start : start + self.lot]
            files = {path: file for path in lot if (file := self._read_file(path)) is not None}
            keys = {path: self._file_key(file) for path, file in files.items()}
            facts = dict(self.kept.read_facts(keys.values())) if self.kept else {}
            unknown = [file for path, file in files.items() if keys[path] not in facts]
            done, new = start + len(files) - len(unknown), dict[bytes, FileFacts]()
            try:
                for path, found in self._extract(unknown, progress, done, len(paths)):
                    if isinstance(found, FileFacts):
                        new[keys[path]] = found
                    else:
                        self.skipped.append(Remark(path, found))
            finally:  # an interrupted run too caches what it read
                if self.kept:
                    self.kept.store_facts(new)
            self.read, self.reused = self.read + len(new), self.reused + len(files) - len(unknown)
            facts |= new
            readable = [keys[path] for path in files if keys[path] in facts]
            self.keys += readable
            yield from map(facts.__getitem__, readable)
            yield from self._placeholder_modules(lot)

    def _extract(
        self, files: list[SourceFile], progress: FileProgress, done: int, total: int
    ) -> Iterator[tuple[str, FileFacts | str]]:
        """Yield the facts of each file, or why it cannot be read: here, or as workers finish."""
        if self.client is None:
            for number, file in enumerate(files, done + 1):
                progress(number, total, file.path)
                yield file.path, facts_or_error(file)
            return
        batches = split_batches(files)
        read = run_jobs(self.client, partial(extract_batch, extraction_version()), batches)
        for number, found in read if batches else ():
            done += len(batches[number])
            progress(done, total, batches[number][-1].path)
            for file, facts in zip(batches[number], found, strict=True):
                # a parser that a worker lacks may be here
                yield file.path, facts if isinstance(facts, FileFacts) else facts_or_error(file)

    def _placeholder_modules(self, paths: list[str]) -> Iterator[FileFacts]:
        """Yield a bare module for each Python file that could not be read, since others may import it."""
        skipped = {each.path for each in self.skipped}
        for path in paths:
            if path in skipped and path.endswith(PYTHON_ENDINGS):
                module = self.names.name_of(path)
                self.keys.append(cache_key(path, module, "could not be read"))
                file = Definition(module, "module", module.rpartition(".")[2], 1, 1, "", "could not be read")
                yield FileFacts(path, "python", (file,))

    def _read_file(self, path: str) -> SourceFile | None:
        limit = _MAX_FILE_BYTES.get(PurePosixPath(path).suffix.lower(), LARGEST_FILE)
        try:
            data = read_regular_file(self.files[path], limit)
        except OSError as error:
            self.skipped.append(Remark(path, error.strerror or str(error)))
            return None
        module = self.names.name_of(path) if path.endswith(PYTHON_ENDINGS) else ""
        modules = self.modules if path.endswith(SCRIPT_ENDINGS) else {}
        return SourceFile(path, data, module, self.names.package_of.get(module, False), modules)

    def _file_key(self, file: SourceFile) -> bytes:
        return cache_key(file.path, file.module, str(file.is_package), repr(file.modules), file.data)
