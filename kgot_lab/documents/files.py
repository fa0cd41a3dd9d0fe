"""The text of one file, whatever its format."""

from __future__ import annotations

import codecs
import io
import re
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.errors import BadInput, NotInstalled

PLAIN = (".txt", ".md", ".csv", ".json", ".xml")
CONVERTED = {
    ".html": "HtmlConverter", ".htm": "HtmlConverter", ".pdf": "PdfConverter",
    ".docx": "DocxConverter", ".pptx": "PptxConverter", ".xlsx": "XlsxConverter",
}  # fmt: skip
_OFFICE = {  # the part that makes a zip file one of Office's, and what such a file is called
    ".docx": ("word/document.xml", "Word file", "a Word document"),
    ".pptx": ("ppt/presentation.xml", "PowerPoint file", "slides"),
    ".xlsx": ("xl/workbook.xml", "Excel file", "an Excel workbook"),
}
_NOT_ASCII = ("utf-16", "utf-32", "iso-2022", "hz")  # bytes that look like UTF-8 or like no text at all, so what is declared goes first
_LARGEST = 50_000_000  # bytes of a file, and ten times that for what a file of Office may unpack to
_MARKS = {  # of the byte order; that of UTF-32 begins with that of UTF-16
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}


@dataclass(frozen=True)
class Text:
    """The text found in a file, the title it declares, and what had to be guessed to read it ('' if nothing)."""

    text: str
    title: str = ""
    remark: str = ""


def text_of(path: Path) -> Text:
    """The text of a file: plain text as it is, PDF, HTML, Word, PowerPoint and Excel as Markdown.

    Raises BadInput with the reason when it cannot be read, is empty, binary or larger than 50 MB; NotInstalled without the converter.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise BadInput(f"larger than {_LARGEST // 1_000_000} MB")
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot be opened ({error.strerror})") from error
    return text_from(data, path.suffix.lower())


def text_from(data: bytes, extension: str, charset: str = "") -> Text:
    """The text of what a file with this extension holds; `charset` is what its sender declares. Raises as text_of does."""
    if not data.removeprefix(codecs.BOM_UTF8).strip() or data in (mark for marks in _MARKS.values() for mark in marks):
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
    elif extension in _OFFICE:
        _check_office(data, *_OFFICE[extension])
    try:
        from markitdown import MissingDependencyException, StreamInfo, converters
    except ImportError:
        raise NotInstalled("lab", "markitdown") from None
    try:
        # the converter itself, not the one that guesses: that one takes a broken PDF for plain text
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = getattr(converters, CONVERTED[extension])().convert(io.BytesIO(data), StreamInfo(extension=extension, charset="utf-8"))
    except MissingDependencyException:
        raise NotInstalled("lab", f"the {extension} part of markitdown") from None
    except Exception as error:  # whatever a broken file makes a parser do
        raise BadInput(f"cannot be read as {extension} ({type(error).__name__}: {str(error)[:200]})") from error
    notes = [remark, *(str(warning.message)[:200] for warning in said if not issubclass(warning.category, DeprecationWarning))]
    return Text(result.text_content, (result.title or "").strip(), "; ".join(filter(None, notes)))


def _check_office(data: bytes, main_part: str, kind: str, inside: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(item.file_size for item in archive.infolist()) > 10 * _LARGEST:
                raise BadInput(f"unpacks to more than {10 * _LARGEST // 1_000_000} MB")
            if main_part not in archive.namelist():
                raise BadInput(f"a zip file without {inside} in it")
    except zipfile.BadZipFile as error:
        raise BadInput(f"not {'an' if kind[0] in 'AE' else 'a'} {kind}, whatever its name says ({error})") from error


def _declared_charset(page: bytes) -> str:
    match = re.search(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_-]+)", page[:2048])
    return match[1].decode() if match else ""


def _decoded(data: bytes, declared: str = "") -> Text:
    """The text of some bytes: UTF-8, or UTF-16 or UTF-32 with its mark, or what is declared, or Windows-1252, or UTF-8 with gaps."""
    for encoding, marks in _MARKS.items():
        if data.startswith(marks):
            return Text(data.decode(encoding, "replace"))
    if declared.lower().startswith(_NOT_ASCII):
        try:
            return Text(data.decode(declared))
        except (UnicodeDecodeError, LookupError):
            pass
    if b"\x00" in data:
        raise BadInput("binary, not text")
    try:
        return Text(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        pass
    for encoding in filter(None, (declared, "cp1252")):
        try:
            return Text(data.decode(encoding), remark=f"not UTF-8; read as {encoding}")
        except (UnicodeDecodeError, LookupError):
            continue
    text = data.decode("utf-8", "replace")
    gaps = text.count("�")
    if gaps > len(text) / 10:
        raise BadInput("binary, not text")
    return Text(text, remark=f"not UTF-8; {gaps} characters were replaced")
