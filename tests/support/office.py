"""Files of Office and PDFs, made by hand."""

from __future__ import annotations

from support.zips import zip_of


def pdf(text: str) -> bytes:
    """A PDF of one page."""
    page = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode() if text else b""
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(page), page),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 6\n0000000000 65535 f \n"
    return out + head + table + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(out)


def docx(*paragraphs: str) -> bytes:
    """A Word file: the first paragraph is a heading. What begins with a tag is put in as it is."""
    package = "http://schemas.openxmlformats.org/package/2006"
    service = "http://schemas.openxmlformats.org/officeDocument/2006"
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    style = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
    body = "".join(
        text
        if text.startswith("<")
        else f"<w:p>{style * (text == paragraphs[0])}<w:r><w:t>{text}</w:t></w:r></w:p>"
        for text in paragraphs
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{word}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{service}/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        f"<w:body>{body}</w:body></w:document>",
    }
    return zip_of(files)


def word_table(*rows: str) -> str:
    """A table in a Word file, cells divided by bars: "~" begins a cell that "^" continues, "*" one in bold."""

    def cell(text: str) -> str:
        merge = {"^": "<w:vMerge/>", "~": '<w:vMerge w:val="restart"/>'}.get(text[:1], "")
        bold = "<w:rPr><w:b/></w:rPr>" if text.startswith("*") else ""
        words = f"<w:p><w:r>{bold}<w:t>{text.strip('*^~')}</w:t></w:r></w:p>"
        return f"<w:tc><w:tcPr>{merge}</w:tcPr>{words}</w:tc>"

    lines = (f"<w:tr>{''.join(map(cell, row.split('|')))}</w:tr>" for row in rows)
    return f"<w:tbl><w:tblPr/>{''.join(lines)}</w:tbl>"
