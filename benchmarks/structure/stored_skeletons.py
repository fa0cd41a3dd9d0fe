"""A file of skeletons that a model made: JSON lines, keyed by the hash of their text."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.io.files import write_atomically
from kgot_lab.text.cleaning import replace_surrogates


class SkeletonFile:
    """The skeletons in a file that `save_skeletons` wrote, as a maker."""

    def __init__(self, path: Path) -> None:
        self.head, *rows = map(
            json.loads, gzip.decompress(path.read_bytes()).decode().strip("\n").split("\n")
        )
        self.name = str(self.head["maker"])
        self._skeletons = {row["text_sha256"]: row["skeleton"] for row in rows}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the texts and their skeletons."""
        return _sha256(json.dumps(sorted(self._skeletons.items())))

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The stored skeleton of each text."""
        return [self._look_up(text) for text in texts]

    def _look_up(self, text: str) -> str:
        if text not in self:
            raise BadInput(f"there is no stored skeleton of {text[:60]!r}: have a model make it and save it")
        return self._skeletons[_sha256(text)]

    def __contains__(self, text: str) -> bool:
        return _sha256(text) in self._skeletons

    def __len__(self) -> int:
        return len(self._skeletons)


def save_skeletons(skeletons: Mapping[str, str], maker: str, path: Path, *, model: str, date: str) -> None:
    """Write skeletons as gzipped JSON lines; the same ones give the same bytes.

    First the header {"skeletons": 1, "maker", "model", "date"}, then {"text_sha256", "skeleton"} for each, in
    the order of the hashes.
    """
    head = {"skeletons": 1, "maker": maker, "model": model, "date": date}
    lines = sorted((_sha256(text), skeleton) for text, skeleton in skeletons.items())
    rows = [head, *({"text_sha256": key, "skeleton": skeleton} for key, skeleton in lines)]
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    write_atomically(path, gzip.compress(data, mtime=0), "the skeletons")


def _sha256(text: str) -> str:
    return hashlib.sha256(replace_surrogates(text).encode()).hexdigest()
