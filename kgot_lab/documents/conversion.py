"""The converter process, which turns PDF, HTML and Office files into Markdown.

It is a separate process because a file may take any amount of time and memory. Requests and replies have a
header with two lengths: that of JSON, and that of a file's bytes, which is 0 in replies.
"""

from __future__ import annotations

import io
import json
import os
import select
import struct
import sys
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from kgot_lab.documents.archives import require_short_directory
from kgot_lab.errors import BadInput, NotInstalled

CONVERTERS = {
    ".html": "HtmlConverter", ".htm": "HtmlConverter", ".pdf": "PdfConverter",
    ".docx": "DocxConverter", ".pptx": "PptxConverter", ".xlsx": "XlsxConverter",
}  # fmt: skip
_OFFICE = {  # the member that identifies an Office file, and the name of the format
    ".docx": ("word/document.xml", "Word file", "a Word document"),
    ".pptx": ("ppt/presentation.xml", "PowerPoint file", "slides"),
    ".xlsx": ("xl/workbook.xml", "Excel file", "an Excel workbook"),
}
_MOST_UNPACKED = 500_000_000  # unpacked bytes of an Office file
# unpacked bytes allowed for any file, and beyond that the maximum ratio to its size
_SAFE_SIZE, _RATIO = (10_000_000, 200)
_MOST_TEXT = 50_000_000  # characters
MESSAGE_HEADER = struct.Struct(">II")
_IDLE_SECONDS = 60.0  # idle seconds after which the process exits

ConversionReply = dict[str, str]  # text, title and notes; or error, and in `extra` what is missing


def main() -> None:
    """Convert files from standard input until it closes or is idle for a while."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # a converter's output must not mix with replies
    _prepare()
    _send(replies, {})  # signals readiness
    while _request_arrived(requests) and (head := requests.read(MESSAGE_HEADER.size)):
        header_size, size = MESSAGE_HEADER.unpack(head)
        request = json.loads(requests.read(header_size))
        _limit_memory(request["memory_mb"])
        try:
            reply = convert(requests.read(size), request["extension"])
        except MemoryError:
            reply = {"error": "needs more memory than a file may take", "spent": "memory"}
        _send(replies, reply)


def convert(data: bytes, extension: str) -> ConversionReply:
    """Convert a file to text. `error` of the result says why it cannot be converted."""
    try:
        if extension in _OFFICE:
            _check_office_file(data, *_OFFICE[extension])
        from markitdown import MissingDependencyException, StreamInfo, converters

        try:
            # the specific converter, since the guessing one reads a broken PDF as plain text
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                info = StreamInfo(extension=extension, charset="utf-8")
                result = getattr(converters, CONVERTERS[extension])().convert(io.BytesIO(data), info)
        except MissingDependencyException:
            raise NotInstalled("lab", f"the {extension} part of markitdown") from None
        if len(result.text_content) > _MOST_TEXT:
            raise BadInput(f"holds more than {_MOST_TEXT // 1_000_000} million characters")
        others = [each for each in caught if not issubclass(each.category, DeprecationWarning)]
        notes = "; ".join(dict.fromkeys(str(other.message)[:200] for other in others))
        return {"text": result.text_content, "title": (result.title or "").strip(), "notes": notes}
    except BadInput as error:
        return {"error": str(error)}
    except NotInstalled as error:
        return {"error": str(error), "extra": error.extra}
    except ImportError:
        return {"error": "markitdown is not installed", "extra": "lab"}
    except MemoryError:
        raise
    except Exception as error:  # any parser error of a broken file
        return {"error": f"cannot be read as {extension} ({type(error).__name__}: {str(error)[:200]})"}


def _check_office_file(data: bytes, main_part: str, kind: str, inside: str) -> None:
    """Raise BadInput unless this is an Office file of the expected kind with contents of acceptable size."""
    try:
        require_short_directory(io.BytesIO(data))
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(item.file_size for item in archive.infolist())
            if size > _MOST_UNPACKED:
                raise BadInput(f"unpacks to more than {_MOST_UNPACKED // 1_000_000} MB")
            if size > max(_SAFE_SIZE, _RATIO * len(data)):
                raise BadInput(f"unpacks to {size / 1e6:,.0f} MB, more than {_RATIO} times its size")
            if main_part not in archive.namelist():
                raise BadInput(f"a zip file without {inside} in it")
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        problem = f"not {'an' if kind[0] in 'AE' else 'a'} {kind}"
        raise BadInput(f"{problem}, whatever its name says ({error})") from error


def _prepare() -> None:
    """Import the converters if installed, so that this time does not count for a file."""
    with suppress(ImportError):
        import markitdown  # noqa: F401


def _limit_memory(memory_mb: int) -> None:
    """Limit this process's additional memory, if the system supports it, and prevent writing files."""
    if sys.platform != "linux":
        return
    import resource

    status = Path("/proc/self/status").read_text().splitlines()
    used = next(int(line.split()[1]) for line in status if line.startswith("VmData:"))
    _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    soft_limit = (used << 10) + (memory_mb << 20)
    if hard_limit != resource.RLIM_INFINITY:
        soft_limit = min(soft_limit, hard_limit)
    resource.setrlimit(resource.RLIMIT_DATA, (soft_limit, hard_limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _request_arrived(requests: BinaryIO) -> bool:
    """Return whether a request came in time.

    On Windows, where a pipe cannot be watched, return True, so that the read waits.
    """
    return sys.platform == "win32" or bool(select.select([requests], [], [], _IDLE_SECONDS)[0])


def _send(replies: BinaryIO, reply: ConversionReply) -> None:
    data = json.dumps(reply).encode()
    replies.write(MESSAGE_HEADER.pack(len(data), 0) + data)
    replies.flush()
