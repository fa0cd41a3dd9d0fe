"""The text of one file, whatever its format."""

from __future__ import annotations

import codecs
import errno
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.documents.conversion import CONVERTED
from kgot_lab.documents.files import converter_of
from kgot_lab.errors import BadInput, NotInstalled, shortly
from kgot_lab.io.text_files import read_regular, wide_encoding

PLAIN = (".txt", ".md", ".csv", ".json", ".xml")
# bytes that look like UTF-8 or like no text at all, so what is declared goes first
_NOT_ASCII = ("utf-16", "utf-32", "iso2022", "hz")
# or never end
_NO_CHARSETS = {"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "mbcs", "oem"}
_LARGEST = 50_000_000  # bytes of a file
# of the byte order
_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  # that no text holds but those of old terminals


@dataclass(frozen=True)
class Text:
    """The text found in a file, the title it declares, and what had to be guessed to read it ('' if nothing)."""

    text: str
    title: str = ""
    remark: str = ""


def text_of(path: Path) -> Text:
    """The text of a file: plain text as it is, PDF, HTML, Word, PowerPoint and Excel as Markdown.

    What is converted is so in a process of its own, which has its limits of time and memory. Raises BadInput
    with the reason when it cannot be read, is empty, binary or larger than 50 MB; NotInstalled without the
    converter.
    """
    try:
        data = read_regular(path, _LARGEST)
    except OSError as error:
        plain = error.errno in (errno.EFBIG, errno.EINVAL)  # its words are ours
        raise BadInput(str(error.strerror) if plain else f"cannot be opened ({error.strerror})") from error
    return text_from(data, path.suffix.lower())


def text_from(data: bytes, extension: str, charset: str = "") -> Text:
    """The text of what a file with this extension holds; `charset` is what its sender declares. Raises as
    text_of does.
    """
    if not data.removeprefix(codecs.BOM_UTF8).strip() or data in _MARKS:
        raise BadInput("empty")
    found = _converted(data, extension, charset) if extension in CONVERTED else _decoded(data, charset)
    if not found.text.strip():
        raise BadInput("holds no text" + " (perhaps pictures of pages)" * (extension == ".pdf"))
    return found


def _converted(data: bytes, extension: str, charset: str) -> Text:
    remark = ""
    if CONVERTED[extension] == "HtmlConverter":
        page = _decoded(data, charset or _declared_charset(data))
        data, remark = page.text.encode(), page.remark
    elif extension == ".pdf" and b"%PDF-" not in data[:1024]:
        raise BadInput("not a PDF, whatever its name says")
    if importlib.util.find_spec("markitdown") is None:
        raise NotInstalled("lab", f"markitdown, which reads {extension} files")
    found = converter_of(os.getpid()).convert(data, extension)
    if "extra" in found:
        raise NotInstalled(found["extra"], f"what reads {extension} files")
    if "error" in found:
        raise BadInput(found["error"])
    return Text(found["text"], found["title"], "; ".join(filter(None, (remark, found["notes"]))))


def _declared_charset(page: bytes) -> str:
    match = re.search(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_-]+)", page[:2048])
    return match[1].decode() if match else ""


def _known_charset(declared: str) -> str:
    """The name of a character set as Python knows it; "" for one that it does not know, or that is none."""
    try:
        found = codecs.lookup(declared.strip())
    except (LookupError, ValueError):
        return ""
    is_text = getattr(found, "_is_text_encoding", True)  # base64 and its like make bytes of bytes
    return found.name if is_text and found.name.replace("-", "_") not in _NO_CHARSETS else ""


def _decoded(data: bytes, declared: str = "") -> Text:
    """The text of some bytes: UTF-8, or UTF-16 or UTF-32, or what is declared, or Windows-1252, or UTF-8 with
    gaps; raises BadInput.
    """
    if wide := wide_encoding(data):
        return Text(
            data.decode(wide, "replace"),
            remark="" if data.startswith(_MARKS) else f"without a mark; read as {wide}",
        )
    told, declared = declared, _known_charset(declared)
    unknown = f"{shortly(told)} is no character set; " if told and not declared else ""
    if declared.startswith(_NOT_ASCII):
        try:
            return Text(data.decode(declared))
        except UnicodeError:
            pass
    if b"\x00" in data:
        raise BadInput("binary, not text")
    try:
        return Text(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        pass
    for encoding in filter(None, (declared, "cp1252")):
        try:
            text = data.decode(encoding)
        except UnicodeError:
            continue
        if encoding == "cp1252" and _CONTROLS.search(text):
            raise BadInput("in no character set that can be told: save it as UTF-8")
        return Text(text, remark=f"{unknown}not UTF-8; read as {encoding}")
    text = data.decode("utf-8", "replace")
    gaps = text.count("�")
    if gaps > len(text) / 10:
        raise BadInput("binary, not text")
    return Text(text, remark=f"{unknown}not UTF-8; {gaps} characters were replaced")
