"""Zip files that mean harm, made by hand where Python's own writer would refuse."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping


def zip_of(files: Mapping[str, bytes | str], *, mode: int = stat.S_IFREG | 0o644) -> bytes:
    """A zip file with these members, of a kind that `mode` says."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return out.getvalue()


def zip_named(name: str, data: bytes = b"x") -> bytes:
    """A zip file with one member whose name stands in it exactly as given."""
    stand_in = "n" * len(name.encode())
    return zip_of({stand_in: data}).replace(stand_in.encode(), name.encode())


def lying_zip(size: int, said: int) -> bytes:
    """A zip file with a member of `size` zeros that says it has `said`."""
    made = zip_of({"zeros": b"\x00" * size})
    return made.replace(size.to_bytes(4, "little"), said.to_bytes(4, "little"))


def locked_zip() -> bytes:
    """A zip file whose member says that it needs a password."""
    made = bytearray(zip_of({"locked.txt": "x"}))
    made[6] |= 1
    made[made.index(b"PK\x01\x02") + 8] |= 1
    return bytes(made)
