"""Reading the text of one file of any format."""

from __future__ import annotations

import codecs
import email
import email.policy
import errno
import hashlib
import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
import threading
import weakref
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kgot_lab.arguments import POSITIVE, CheckedRecord, bounded
from kgot_lab.documents import conversion
from kgot_lab.documents.conversion import CONVERTERS, MESSAGE_HEADER, ConversionReply
from kgot_lab.documents.encodings import guess_encoding
from kgot_lab.embedding.vectors import CacheFile
from kgot_lab.errors import BadInput, NotInstalled, short_repr
from kgot_lab.io.files import detect_wide_encoding, read_regular_file
from kgot_lab.io.processes import watchdog
from kgot_lab.types import Json

# Conversion in a separate process, which is killed if a file takes too long and restarted for the next.

_START_COMMAND = (
    "import sys; sys.path[:] = sys.argv[1:]; from kgot_lab.documents.conversion import main; main()"
)
_START_TIMEOUT = 120.0  # timeout for loading the converters, in seconds
# environment variables that a program needs to start; keys are withheld from a reader of untrusted files
_ENVIRONMENT = "PATH HOME LANG LC_ALL TMPDIR TEMP TMP SYSTEMROOT LD_LIBRARY_PATH DYLD_LIBRARY_PATH".split()


@dataclass(frozen=True)
class ConvertLimits(CheckedRecord):
    """Limits of the conversion of one file."""

    seconds: float = bounded(30.0, POSITIVE)
    seconds_a_megabyte: float = 20.0  # of the file, in addition
    most_seconds: float = bounded(300.0, POSITIVE)
    # of that time: a page is not packed, so a megabyte is less (2 s for running text, 8 s for cells of tables)
    share_of_page: float = bounded(0.4, 0, 1)
    memory_mb: int = bounded(1024, 1)

    def time_limit(self, size: int, extension: str) -> float:
        """Return the time limit, in seconds, for a file of this size."""
        share = self.share_of_page if CONVERTERS[extension] == "HtmlConverter" else 1
        return share * min(self.seconds + self.seconds_a_megabyte * size / 1e6, self.most_seconds)


class _ProcessEnded(Exception):
    """The process ended without an answer."""


class _ProcessTimedOut(_ProcessEnded):
    """The process was killed because it took too long."""


class _ProcessIdled(_ProcessEnded):
    """The process had exited by itself after being idle."""


class Converter:
    """A process that converts one file after the other. It starts with the first and exits when idle."""

    def __init__(self, limits: ConvertLimits = ConvertLimits()):
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        # at the latest with this object or the program
        self._stop: weakref.finalize[..., Converter] | None = None
        self._lock = threading.Lock()

    def convert(self, data: bytes, extension: str) -> ConversionReply:
        """Convert a file in the converter process and return its text, or why it has none.

        Raises BadInput if there is no answer within the limits.
        """
        seconds = self.limits.time_limit(len(data), extension)
        head = json.dumps({"extension": extension, "memory_mb": self.limits.memory_mb}).encode()
        request = MESSAGE_HEADER.pack(len(head), len(data)) + head + data
        with self._lock:
            try:
                try:
                    reply = _request(self._running_process(), request, seconds)
                except _ProcessIdled:
                    reply = _request(self._running_process(), request, seconds)
            except _ProcessTimedOut:
                self._stop_process()
                raise BadInput(f"takes longer than {seconds:.3g} seconds to read") from None
            except _ProcessEnded:
                self._stop_process()
                raise BadInput("makes the program that reads it crash") from None
            except BaseException:  # interrupted: the answer would be read for the next file
                self._stop_process()
                raise
            if "spent" in reply:  # memory that was used up may not be freed
                self._stop_process()
            return reply

    def close(self) -> None:
        """Stop the process. The next file starts a new one."""
        with self._lock:
            self._stop_process()

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop_process()
            environment = {name: os.environ[name] for name in os.environ if name.upper() in _ENVIRONMENT}
            environment["OPENBLAS_NUM_THREADS"] = "1"
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _START_COMMAND, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    env=environment, start_new_session=True,
                )  # fmt: skip
                self._stop = weakref.finalize(self, _kill_process, self._process, os.getpid())
                threading.Thread(target=_reap_process, args=(self._process,), daemon=True).start()
                _request(self._process, b"", _START_TIMEOUT)
            except (OSError, _ProcessEnded) as error:
                self._stop_process()
                raise BadInput(f"the program that converts files could not be started ({error})") from None
        return self._process

    def _stop_process(self) -> None:
        if self._stop is not None:
            self._stop()
        self._process = self._stop = None


@cache
def process_converter(process_id: int) -> Converter:
    """Return the converter of this process. A fork has another process id and so gets its own."""
    return Converter()


def _request(process: subprocess.Popen[bytes], request: bytes, seconds: float) -> ConversionReply:
    """Send a request to a process and return its answer, and kill it after `seconds`.

    Raises _Ended if it ended without an answer.
    """
    assert process.stdin is not None and process.stdout is not None
    with watchdog(seconds, process.kill) as late:
        try:
            process.stdin.write(request)
            process.stdin.flush()
            size, _ = MESSAGE_HEADER.unpack(process.stdout.read(MESSAGE_HEADER.size))
            reply: ConversionReply = json.loads(process.stdout.read(size))
            return reply
        except (OSError, ValueError, struct.error):
            if late.is_set():
                raise _ProcessTimedOut from None
            raise _ProcessIdled if process.wait() == 0 else _ProcessEnded("it ended at once") from None


def _kill_process(process: subprocess.Popen[bytes], parent: int) -> None:
    """Kill a process, unless this is a fork of the one that started it."""
    if os.getpid() == parent:
        process.kill()
        _reap_process(process)


def _reap_process(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process to end and release its resources, in a thread, since it may end at any time."""
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # unwritten data
                pipe.close()


# bytes that look like UTF-8 or like no text at all, so what is declared goes first
_NOT_ASCII = ("utf-16", "utf-32", "iso2022", "hz")
# or never end
_NO_CHARSETS = {"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "mbcs", "oem"}
LARGEST_FILE = 50_000_000  # bytes of a file
MAIL_EXTENSIONS = (".eml", ".mht", ".mhtml")
# formats that are not read, and a similar one that is
SAVE_AS = {
    ".doc": ".docx", ".odt": ".docx", ".rtf": ".docx", ".xls": ".xlsx", ".ods": ".xlsx",
    ".ppt": ".pptx", ".odp": ".pptx", ".epub": ".html", ".msg": ".eml",
}  # fmt: skip
# of files that are no text, whatever their names say if they are read as one
_NO_TEXT = frozenset(
    ".7z .avi .bmp .bz2 .db .exe .flac .gif .gz .heic .ico .jpeg .jpg .mov .mp3 .mp4 .npy .npz .ogg .parquet .pickle "
    ".pkl .png .rar .sqlite .tar .tgz .tif .tiff .wav .webm .webp .whl .xz .zip .zst".split()
)
# byte order marks
_BYTE_ORDER_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class ExtractedText:
    """The text of a file, the title it declares, and what was guessed to read it or left out ('' if nothing).

    `extension` is that of a file that holds such a text, "" for its own.
    """

    text: str
    title: str = ""
    remark: str = ""
    extension: str = ""


def read_document_text(path: Path, *, cached: bool = False) -> ExtractedText:
    """Read the text of a file: plain text unchanged, PDF, HTML, Word, PowerPoint and Excel as Markdown.

    Conversion runs in a separate process with limits of time and memory. Raises BadInput with the reason if
    the file cannot be read, is empty, is binary or is larger than 50 MB, and NotInstalled without the
    converter.
    """
    try:
        data = read_regular_file(path, LARGEST_FILE)
    except OSError as error:
        plain = error.errno in (errno.EFBIG, errno.EINVAL)  # the message is ours
        raise BadInput(str(error.strerror) if plain else f"cannot be opened ({error.strerror})") from error
    return extract_text(data, path.suffix.lower(), cached=cached)


def extract_text(data: bytes, extension: str, charset: str = "", *, cached: bool = False) -> ExtractedText:
    """Return the text in a file's data, given its extension. `charset` is the declared character set.

    With `cached`, the text of a converted file is stored, and is not converted again. Raises as
    read_document_text does.
    """
    if not data.removeprefix(codecs.BOM_UTF8).strip() or data in _BYTE_ORDER_MARKS:
        raise BadInput("empty")
    if extension in SAVE_AS:
        raise BadInput(f"{extension} is not read; save it as {SAVE_AS[extension]}")
    if extension in MAIL_EXTENSIONS:
        found = _mail_text(data, cached)
    elif extension in CONVERTERS:
        found = _convert_text(data, extension, charset, cached)
    else:
        found = _decode_text(data, charset)
    remark = "read with its markup" if extension in (".tex", ".xml") else ""
    remark = f"a text, not what {extension} says" if extension in _NO_TEXT else remark
    if remark:
        found = replace(found, remark="; ".join(filter(None, (found.remark, remark))))
    if not found.text.strip():
        raise BadInput("holds no text" + (" (perhaps pictures of pages)" if extension == ".pdf" else ""))
    return found


def _mail_text(data: bytes, cached: bool) -> ExtractedText:
    """Return the header and the text of a mail, or of a saved page, which has the same form."""
    try:
        message = email.message_from_bytes(data, policy=email.policy.default)
        names = ("Subject", "From", "To", "Cc", "Date")
        head = "".join(f"{name}: {' '.join(message[name].split())}\n" for name in names if message[name])
        body = message.get_body(("plain", "html"))
        payload = body.get_payload(decode=True) if body else b""
        left_out = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    except Exception as error:  # as any header may raise
        raise BadInput(f"cannot be read as a mail ({type(error).__name__}: {str(error)[:200]})") from None
    remarks = [f"left out: {', '.join(left_out)}"] if left_out else []
    extension, text = ".txt", ""
    if body and isinstance(payload, bytes) and payload.strip():
        extension = ".html" if body.get_content_subtype() == "html" else ".txt"
        found = extract_text(payload, extension, body.get_content_charset() or "", cached=cached)
        text, remarks = found.text, [*filter(None, [found.remark]), *remarks]
    return ExtractedText(f"{head}\n{text}", "", "; ".join(remarks), extension)


def _convert_text(data: bytes, extension: str, charset: str, cached: bool) -> ExtractedText:
    remark = ""
    if CONVERTERS[extension] == "HtmlConverter":
        page = decode_page(data, charset)
        data, remark = page.text.encode(), page.remark
    elif extension == ".pdf" and b"%PDF-" not in data[:1024]:
        raise BadInput("not a PDF, whatever its name says")
    if importlib.util.find_spec("markitdown") is None:
        raise NotInstalled("lab", f"markitdown, which reads {extension} files")
    convert = _convert_once if cached else process_converter(os.getpid()).convert
    found = convert(data, extension)
    if "extra" in found:
        raise NotInstalled(found["extra"], f"what reads {extension} files")
    if "error" in found:
        raise BadInput(found["error"])
    return ExtractedText(found["text"], found["title"], "; ".join(filter(None, (remark, found["notes"]))))


# The cache of this computer for what was read from a file, under a digest of its bytes and of the code.

EXTRACTED_FILES = "extracted_files-2.sqlite"


def _convert_once(data: bytes, extension: str) -> ConversionReply:
    """Convert a file, or return the stored reply for the same bytes."""
    cache = CacheFile(None, EXTRACTED_FILES, label="extraction", fallback="files are read again")
    key = hashlib.sha256(b"\0".join((_converter_version(), extension.encode(), data))).digest()
    if value := cache.read([key]).get(key):
        return dict(unpack_json(value))
    reply = process_converter(os.getpid()).convert(data, extension)
    if "text" in reply:
        cache.write({key: pack_json(reply)})
    return reply


@cache
def _converter_version() -> bytes:
    code = Path(conversion.__file__).read_bytes()
    return hashlib.sha256(code + version("markitdown").encode()).digest()


def pack_json(value: Json | dict[str, Any]) -> bytes:
    """Compress a JSON value for the cache."""
    return zlib.compress(json.dumps(value).encode(), 1)


def unpack_json(value: bytes) -> Any:
    """Return a JSON value from the cache."""
    return json.loads(zlib.decompress(value))


def decode_page(page: bytes, charset: str = "") -> ExtractedText:
    """Decode a page of HTML, by the character set it declares if none is given.

    Raises BadInput if it is no text, or if its encoding is not sure.
    """
    # a declaration that names UTF-16 could not be read if it were true
    match = re.search(rb"(?:charset|<\?xml[^>]* encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_-]+)", page[:2048])
    declared = match[1].decode() if match else ""
    is_possible = not declared.lower().startswith(("utf-16", "utf16", "utf-32", "utf32"))
    return _decode_text(page, charset or (declared if is_possible else ""))


def _known_charset(declared: str) -> str:
    """Return Python's name of a character set, or "" for an unknown one."""
    try:
        found = codecs.lookup(declared.strip())
    except (LookupError, ValueError):
        return ""
    is_text = getattr(found, "_is_text_encoding", True)  # base64 and similar codecs map bytes to bytes
    return found.name if is_text and found.name.replace("-", "_") not in _NO_CHARSETS else ""


def _decode_text(data: bytes, declared: str = "") -> ExtractedText:
    """Decode bytes to text.

    Tries UTF-8, UTF-16 or UTF-32, the declared character set, the likely encoding, and UTF-8 with
    replacements. Raises BadInput for binary data, and with the likely encodings if none is sure.
    """
    if wide := detect_wide_encoding(data):
        remark = "" if data.startswith(_BYTE_ORDER_MARKS) else f"without a mark; read as {wide}"
        with suppress(UnicodeError):
            return ExtractedText(data.decode(wide), remark=remark)
        text = data.decode(wide, "replace")
        remark = f"{remark or f'read as {wide}'}; {text.count('�')} characters were replaced"
        return ExtractedText(text, remark=remark)
    requested, declared = declared, _known_charset(declared)
    unknown = f"{short_repr(requested)} is no character set; " if requested and not declared else ""
    if declared.startswith(_NOT_ASCII):
        with suppress(UnicodeError):
            return ExtractedText(data.decode(declared))
    if b"\x00" in data:
        raise BadInput("binary, not text")
    if b"\x1b$" in data:  # an escape of ISO 2022
        encoding = "iso2022_kr" if b"\x1b$)C" in data else "iso2022_jp_2"
        with suppress(UnicodeError):
            return ExtractedText(data.decode(encoding), remark=f"read as {encoding}")
    with suppress(UnicodeError):
        return ExtractedText(data.decode("utf-8-sig"))
    with suppress(UnicodeError, LookupError):
        return ExtractedText(data.decode(declared), remark=f"not UTF-8; read as {declared}")
    replaced = data.decode("utf-8", "replace")
    gaps = replaced.count("�")
    if sum(not letter.isascii() for letter in replaced) <= 3 * gaps:  # not mostly UTF-8
        text, likely = guess_encoding(data)
        if text:
            return ExtractedText(text, remark=f"{unknown}not UTF-8; read as {likely[0]}")
        if likely:
            names = ", ".join(likely)
            raise BadInput(f"not UTF-8, and not sure in which encoding ({names}): save it as UTF-8")
        if gaps > len(replaced) / 10:
            raise BadInput("not UTF-8, and not sure in which encoding: save it as UTF-8")
    return ExtractedText(replaced, remark=f"{unknown}not UTF-8; {gaps} characters were replaced")
