import base64
import codecs
import io
import json
import os
import sys
import time
import zipfile
from pathlib import Path

import pytest
from support.every import every
from support.installed import needs
from support.office import docx, pdf, word_table
from support.zips import zip_of

from kgot_lab.cli.terminal import read_folder
from kgot_lab.documents.files import read_document_text
from kgot_lab.documents.folder import read_documents
from kgot_lab.documents.passages import split_passages
from kgot_lab.documents.structure import read_sections
from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.text.words import text_sentences

needs("markitdown")


HTML = (
    b"<html><head><title>Window title</title><script>alert('no')</script></head>"
    b"<body><h1>Tea &amp; cake</h1><p>Served at <b>four</b>.</p></body></html>"
)


def folder_of(tmp_path: Path, **files: bytes) -> Path:
    for name, data in files.items():
        path = tmp_path / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path


def test_every_kind_of_file_is_read(tmp_path):
    folder = folder_of(
        tmp_path,
        a_DOT_txt="Naïve café.".encode(),
        b_DOT_md=b"# Moon\n\nThe moon is far.",
        c_DOT_html=HTML,
        d_DOT_htm=HTML,
        e_DOT_pdf=pdf("Rivers run to the sea."),
        f_DOT_docx=docx("Minutes", "The board met on Monday."),
        g_DOT_csv=b"name,age\nAda,36\n",
        h_DOT_json=b'{"name": "Ada"}',
        sub__deep__I_DOT_TXT=b"Deep down.",
    )
    library = read_documents(folder)
    texts = {document.id: document.text for document in library}
    assert list(texts) == [
        "a.txt#1", "b.md#1", "c.html#1", "d.htm#1", "e.pdf#1", "f.docx#1", "g.csv#1", "h.json#1", "sub/deep/I.TXT#1",
    ]  # fmt: skip
    assert texts["a.txt#1"] == "Naïve café."
    assert texts["c.html#1"] == "Served at four."  # the heading is the title
    assert texts["e.pdf#1"] == "Rivers run to the sea."
    assert "The board met on Monday." in texts["f.docx#1"]
    expected = ["a", "Moon", "Tea & cake", "Tea & cake", "e", "Minutes", "g", "h", "I"]
    assert [document.title for document in library] == expected
    assert (library.skipped, library.doubtful) == ((), ())


def test_files_that_cannot_be_read_are_named_with_the_reason_and_the_rest_is_kept(tmp_path):
    folder = folder_of(
        tmp_path,
        good_DOT_txt=b"Good.",
        empty_DOT_txt=b" \n",
        binary_DOT_txt=b"\x00\x01\x02" * 100,
        broken_DOT_pdf=pdf("text")[:60],
        text_DOT_pdf=b"just text",
        scan_DOT_pdf=pdf(""),
        broken_DOT_docx=b"PK\x03\x04 no zip",
        other_DOT_docx=zip_of({"hello.txt": "x"}),
        torn_DOT_docx=zip_of({"word/document.xml": "<w:document"}),
        picture_DOT_png=b"\x89PNG\r\n\0",
        run_DOT_jsonl=b'{"trace":1,"run":"r"}\n{"event":"Started","question":"Who?"}\n',
    )
    library = read_documents(folder)
    reasons = {remark.path: remark.reason for remark in library.skipped}
    assert [document.id for document in library] == ["good.txt#1"]
    assert reasons.pop("broken.pdf").startswith("cannot be read as .pdf (")
    assert reasons.pop("torn.docx").startswith("cannot be read as .docx (")
    assert reasons.pop("broken.docx").startswith("not a Word file")
    assert reasons == {
        "empty.txt": "empty",
        "binary.txt": "binary, not text",
        "text.pdf": "not a PDF, whatever its name says",
        "scan.pdf": "holds no text (perhaps pictures of pages)",
        "other.docx": "a zip file without a Word document in it",
        "picture.png": "binary, not text",
        "run.jsonl": "a recorded run of this program",
    }
    assert repr(library).startswith(
        "<Library: 1 passage from 1 file, 10 skipped>\n  skipped binary.txt: binary, not text"
    )


def test_a_file_over_50_megabytes_is_not_opened(tmp_path):
    folder = folder_of(tmp_path, small_DOT_txt=b"small")
    with (folder / "large.txt").open("wb") as file:
        file.truncate(50_000_001)  # sparse: nothing is written
    assert [str(remark) for remark in read_documents(folder).skipped] == ["large.txt: larger than 50 MB"]


@pytest.mark.parametrize(
    ("data", "text", "remark"),
    [
        ("caf\u00e9".encode(), "caf\u00e9", ""),
        ("\ufeffcaf\u00e9".encode(), "caf\u00e9", ""),
        ("caf\u00e9".encode("utf-16"), "caf\u00e9", ""),
        ("caf\u00e9".encode("utf-32"), "caf\u00e9", ""),
        (codecs.BOM_UTF32_BE + "caf\u00e9".encode("utf-32-be"), "caf\u00e9", ""),
        (codecs.BOM_UTF16_BE + "caf\u00e9".encode("utf-16-be"), "caf\u00e9", ""),
        ("caf\u00e9".encode("cp1252"), "caf\u00e9", "not UTF-8; read as cp1252"),
        (
            b"a long enough line of text \x81\xff",
            "a long enough line of text \ufffd\ufffd",
            "not UTF-8; 2 characters were replaced",
        ),
    ],
)
def test_text_that_is_not_utf_8_is_read_and_reported(tmp_path, data, text, remark):
    library = read_documents(folder_of(tmp_path, a_DOT_txt=data))
    assert [document.text for document in library] == [text]
    assert [note.reason for note in library.doubtful] == ([remark] if remark else [])


DECLARED = [
    ('<meta charset="shift_jis">', "shift_jis"),
    ('<meta charset="utf-16">', "utf-8"),  # it could not be read in UTF-16
    ('<meta charset="UTF16LE">', "utf-8"),
    ('<?xml version="1.0" encoding="euc-jp"?>', "euc-jp"),
]


@every("head, encoding", DECLARED)
def test_a_page_is_read_in_the_character_set_it_declares_if_it_can_be(tmp_path, head, encoding):
    page = f"{head}<p>東京</p>".encode(encoding)
    for ending in ("html", "xhtml"):
        path = folder_of(tmp_path, **{f"a_DOT_{ending}": page}) / f"a.{ending}"
        assert read_document_text(path).text.strip() == "東京"


def lines_of(tmp_path, name: str, text: str) -> list[str]:
    library = read_documents(folder_of(tmp_path, **{name.replace(".", "_DOT_"): text.encode()}))
    return [
        f"[{document.title}] {line}"
        for document in library
        for line in text_sentences(document.text, "any script", paragraphs=True)
    ]


TABLES = [
    ("s.csv", "name,part,town\nBelt & Sons,casing,Osk\n", ["[s] Belt & Sons: part casing; town Osk"]),
    ("a value with full stops", "name,note\nHo,At St. Ives. It is 3.5 m. Dr. Ho said so.\n",
     ["[a] Ho: note At St. Ives. It is 3.5 m. Dr. Ho said so."]),
    ("a value that is not given", "name,part,town\nHo,,\nBo,nut,-\n", ["[a] Ho: part, town not given", "[a] Bo: part nut; town not given"]),
    ("quoted cells", 'name,note\nHo,"two\nlines, one cell"\n', ["[a] Ho: note two lines, one cell"]),
    ("a semicolon and decimal commas", "name;price\nNut;3,5\nRope;1,25\n", ["[a] Nut: price 3,5", "[a] Rope: price 1,25"]),
    ("a line that names the separator", "sep=|\nname|town\nHo|Osk\n", ["[a] Ho: town Osk"]),
    ("tabs", "name\ttown\nHo\tOsk, north\n", ["[a] Ho: town Osk, north"]),
    ("no header", "Ho Works,nut,12\nAda,rope,7\n", ["[a] Ho Works: nut; 12", "[a] Ada: rope; 7"]),
    ("two columns of one name", "name,town,town\nHo,Osk,Brell\n", ["[a] Ho: town Osk; town 2 Brell"]),
    ("a title and a note", "Suppliers\n\nSupplier,Town\nHo,Osk\n\nSource: town hall\n",
     ["[Suppliers] Ho (supplier): town Osk", "[Suppliers] Source: town hall"]),
    ("a column of numbers first", "id,name\n7,Ho\n8,Bo\n", ["[a] Ho: id 7", "[a] Bo: id 8"]),
    ("years as names", "Country,2020,2021\nOsk,1,2\nBrell,3,4\n",
     ["[a] Osk (country): 2020 1; 2021 2", "[a] Brell (country): 2020 3; 2021 4"]),
    ("groups of columns", "Region,2023,,2024\n,Q1,Q2,Q1\nNorth,1,2,3\n", ["[a] North (region): 2023 Q1 1; 2023 Q2 2; 2024 Q1 3"]),
    ("a.md", "# T\n\n|Bridge|Year|\n|-|-|\n|North|1998|\n", ["[T] North (bridge): year 1998"]),
    ("b.md", "Bridge | Year\n--- | ---\nNorth | 1998\n", ["[b] North (bridge): year 1998"]),
    ("a.html", "<table><tr><td>Mayor</td><td>Ho</td></tr><tr><td>Founded</td><td>1890</td></tr></table>",
     ["[a] Mayor: Ho", "[a] Founded: 1890"]),
    ("tables side by side", "Item,Owner,,City,Zip\nLamp,Ho,,Ghent,9000\nDesk,Bo,,Bruges,8000\n,,,Osk,7000\n",
     ["[a] Lamp (item): owner Ho", "[a] Desk (item): owner Bo", "[a] Ghent (city): zip 9000", "[a] Bruges (city): zip 8000",
      "[a] Osk (city): zip 7000"]),
    ("an empty column in a table", "Item,,Price,Weight\nNut,,3,5\n", ["[a] Nut (item): price 3; weight 5"]),
    ("rows.html", "<table><tr><th>Region<th>Shop<th>Boss<tr><td rowspan=2>East<td>Lark<td>Ho<tr><td>Marl<td>Bo</table>",
     ["[rows] Lark (shop): region East; boss Ho", "[rows] Marl (shop): region East; boss Bo"]),
    ("open.html", "<table><tr><th>Shop<th>Town<th>Boss<tr><td>Lark<td rowspan=0>Osk<td>Ho<tr><td>Marl<td>Bo<tr><td>Nix<td>-</table>",
     ["[open] Lark (shop): town Osk; boss Ho", "[open] Marl (shop): town Osk; boss Bo", "[open] Nix (shop): town Osk; boss not given"]),
    ("both.html", "<table><tr><th>Day<th>Opens<th>Ends<tr><td>Friday<td>10<td>23<tr><td>Sunday<td colspan=2>closed</table>",
     ["[both] Friday (day): opens 10; ends 23", "[both] Sunday (day): opens closed; ends closed"]),
    ("head.html", "<table><caption>Shop</caption><thead><tr><td rowspan=2>Day</td><td colspan=2>Hours</td></tr><tr><td>Opens</td>"
     "<td>Ends</td></tr></thead><tbody><tr><td>Friday</td><td>ten</td><td>late</td></tr></tbody></table>",
     ["[head] Shop", "[head] Friday (day): hours opens ten; hours ends late"]),
    ("box.html", "<table><tr><th colspan=2>Mount Pell</th></tr><tr><th>Height</th><td>2 m</td></tr><tr><th>Climbed<td>1871</table>",
     ["[Mount Pell] Height: 2 m", "[Mount Pell] Climbed: 1871"]),
    ("nested.html", "<table><tr><td><table><tr><th>Name<th>Age<tr><td>Ho<td>3</table><td>Beside.</table>",
     ["[nested] Ho: age 3", "[nested] Beside."]),
    ("inner.html", "<table><tr><th>Name<th>Ages<tr><td>Ho<td><table><tr><td>3<td>4</table></table>", ["[inner] Ho: ages 3 4"]),
    ("a.json", '[{"name": "Ho", "home": {"town": "Osk"}, "age": null}]', ["[a] Ho: home town Osk; age not given"]),
    ("a.yaml", "# ports\nweb:\n  port: 80\n", ["[web] ports", "[web] port: 80"]),
    ("a.ini", "[web]\nport=80\n", ["[web] port=80"]),
]  # fmt: skip


@every("name, text, expected", TABLES)
def test_a_row_is_one_sentence_that_names_its_columns(tmp_path, name, text, expected):
    folder = tmp_path / str(TABLES.index((name, text, expected)))
    assert lines_of(folder, name if "." in name else "a.csv", text) == expected


WORD_TABLES = [
    (("Train|Platform", "Night mail|11", "Express|2"), ["Night mail (train): platform 11", "Express (train): platform 2"]),
    (("Train|Platform", "~Express|2", "^|5"), ["Express (train): platform 2", "Express (train): platform 5"]),
    (("*Name|*Work", "Ho|cook", "Bo|clerk"), ["Ho: work cook", "Bo: work clerk"]),
    (("Name|Ho", "Home|Mill Lane", "Born|1951"), ["Name: Ho", "Home: Mill Lane", "Born: 1951"]),
    (("*Name|Ho", "*Born|1951"), ["Name: Ho", "Born: 1951"]),
    (("~Osk|Ho|12", "^|Bo|7"), ["Ho: Osk; 12", "Bo: Osk; 7"]),
]  # fmt: skip


@every("rows, expected", WORD_TABLES)
def test_a_table_of_word_has_its_header_and_repeats_merged_cells(tmp_path, rows, expected):
    path = folder_of(tmp_path, a_DOT_docx=docx("Osk", "Text.", word_table(*rows))) / "a.docx"
    (document,) = read_documents(path)
    assert document.text.split("\n")[2:] == [f"| {line}" for line in expected]


MAIL = (
    "Subject: =?utf-8?q?Schl=C3=BCssel?=\nFrom: =?utf-8?q?J=C3=BCrgen?= <j_w@x.org>\nTo: a@x.org\nDate: Fri, 06 Mar 2026 10:00:00 +0100\n"
    "MIME-Version: 1.0\n"
)
PLAIN = "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nDer Schl=FCssel liegt=\n am Ort.\n"
PAGE = (
    "Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: base64\n\n"
    + base64.b64encode("<p>Der <i>Schlüssel</i> liegt am Ort.</p>".encode()).decode()
)
MIXED = 'Content-Type: multipart/mixed; boundary="="\n\n--=\n{}\n--=\nContent-Disposition: attachment; filename="p_1.pdf"\n\nx\n--=--\n'
LATIN = "not UTF-8; read as iso8859-1"
MAILS = [
    (PLAIN, LATIN),
    (PAGE, ""),
    (MIXED.format(PLAIN), f"{LATIN}; left out: p_1.pdf"),
    (MIXED.format(PAGE), "left out: p_1.pdf"),
]


@every("body, remark", MAILS)
def test_a_mail_is_decoded_and_its_attachments_are_named(tmp_path, body, remark):
    library = read_documents(folder_of(tmp_path, a_DOT_eml=(MAIL + body).encode()))
    (document,) = library
    assert document.title == "Schlüssel" and document.text.endswith("\n\nDer Schlüssel liegt am Ort.")
    assert "| From: Jürgen <j_w@x.org>" in document.text and "| To: a@x.org" in document.text
    assert [note.reason for note in library.doubtful] == ([remark] if remark else [])


def test_the_cells_of_a_notebook_and_a_saved_page_are_read_as_text(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "Ho came."]},
        {"cell_type": "code", "source": ["print(1)"]},
    ]
    page = b"MIME-Version: 1.0\nContent-Type: text/html\n\n<h1>Osk</h1><p>A town.</p>"
    folder = folder_of(tmp_path, a_DOT_ipynb=json.dumps({"cells": cells}).encode(), b_DOT_mht=page)
    notebook, saved = read_documents(folder)
    assert (notebook.title, notebook.text) == ("Tides", "Ho came.\n\n```python\nprint(1)\n```")
    assert (saved.title, saved.text) == ("Osk", "A town.")


def test_a_format_that_is_not_read_is_named_with_one_that_is_and_markup_is_told(tmp_path):
    names = ("a.odt", "b.doc", "c.rtf", "d.xls", "e.tex", "f.xml")
    library = read_documents(
        folder_of(tmp_path, **{name.replace(".", "_DOT_"): b"<a>text</a>" for name in names})
    )
    assert [str(remark) for remark in library.skipped] == [
        "a.odt: .odt is not read; save it as .docx", "b.doc: .doc is not read; save it as .docx",
        "c.rtf: .rtf is not read; save it as .docx", "d.xls: .xls is not read; save it as .xlsx",
    ]  # fmt: skip
    told = [f"{name}: read with its markup" for name in ("e.tex", "f.xml")]
    assert [str(remark) for remark in library.doubtful] == told


def test_margins_and_comments_of_word_and_comments_of_excel_are_read(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    with zipfile.ZipFile(io.BytesIO(docx("Osk", "Text."))) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    words = '<w:{0} xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:p><w:r><w:t>By {0}</w:t></w:r></w:p></w:{0}>'
    files |= {f"word/{name}.xml": words.format(name) for name in ("header1", "footer2", "comments")}
    folder_of(tmp_path, a_DOT_docx=zip_of(files))
    book = openpyxl.Workbook()
    book.active.append(["Nut", "Bolt"])
    book.active["B1"].comment = openpyxl.comments.Comment("M8 | long\nones", "Ho")
    book.save(tmp_path / "b.xlsx")
    word, excel = read_documents(tmp_path)
    assert word.text == "Text.\n\nHeader: By header1\n\nFooter: By footer2\n\nComment: By comments"
    assert excel.text.endswith("\n\nComment on B1: M8 | long ones")


def test_a_line_of_json_that_does_not_parse_is_told_and_the_others_are_rows(tmp_path):
    for text in (
        '{"a": "x", "b": 1}\n{"a": "y", "b": 2}\n{broken\n',
        '{broken\n{"a": "x", "b": 1}\n{"a": "y", "b": 2}\n',
    ):
        (document,) = read_documents(folder_of(tmp_path, a_DOT_jsonl=text.encode()))
        line = text.split("\n").index("{broken") + 1
        assert document.text == f"| x (a): b 1\n| y (a): b 2\n\nline {line}, which does not parse: {{broken"


def test_two_tables_and_a_chart_of_a_slide_stay_apart_and_merged_cells_are_repeated(tmp_path):
    pptx = pytest.importorskip("pptx")
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[6])
    rows = [["Fruit", "Price"], ["Quince", "3"]], [["Car", "Driver"], ["Bus", "Ho"], ["", "Bo"]]
    for top, cells in enumerate(rows):
        table = slide.shapes.add_table(len(cells), 2, 0, 1000 * top, 100, 100).table
        for row, texts in enumerate(cells):
            for column, text in enumerate(texts):
                table.cell(row, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    data = CategoryChartData()
    data.categories = ["Apples"]
    data.add_series("Harvest", (7,))
    slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 500, 100, 100, data)
    slides.save(str(tmp_path / "a.pptx"))
    lines = "\n".join(document.text for document in read_documents(tmp_path)).split("\n")
    assert [line for line in lines if line.startswith("|")] == [
        "| Quince (fruit): price 3", "| Apples (category): harvest 7.0", "| Ho (driver): car Bus", "| Bo (driver): car Bus",
    ]  # fmt: skip


PROSE = [
    ("wrapped lines", "a.txt", "The museum is open from Tuesday to Sunday and closed on\nholidays. Ho has the key.\n",
     ["[a] The museum is open from Tuesday to Sunday and closed on holidays.", "[a] Ho has the key."]),
    ("lines", "a.txt", "Museum: Tuesday\nLibrary: Monday\n", ["[a] Museum: Tuesday", "[a] Library: Monday"]),
    ("a list below its line", "a.md", "We met. The shed holds:\n\n- two spades\n- a fork\n  - bent\n",
     ["[a] We met.", "[a] The shed holds: two spades", "[a] The shed holds: a fork", "[a] The shed holds: a fork: bent"]),
    ("a path of headings", "a.md", "# Osk\n\nA town.\n\n## Bridges\n\n### North\n\nopened in 1998\n",
     ["[Osk] A town.", "[Osk (Bridges › North)] opened in 1998"]),
    ("front matter", "a.md", "---\ntitle: On Osk\nauthor: Ho\n---\nA town.\n", ["[On Osk] author: Ho", "[On Osk] A town."]),
    ("a mail", "a.txt", "From: Ho\nSubject: The pump\n\nDear members,\n\nit leaks.\n",
     ["[The pump] From: Ho", "[The pump] Subject: The pump", "[The pump] Dear members,", "[The pump] it leaks."]),
    ("an underlined heading", "a.rst", "Osk\n===\n\nA town.\n", ["[Osk] A town."]),
    ("numbered headings", "a.txt", "Committee\n\n1. Pump\nHo bought it on 17. Mai 2011.\n",
     ["[a] Committee", "[a (Pump)] Ho bought it on 17. Mai 2011."]),
    ("a bold lead", "a.md", "- **Mill.** Closed.\n", ["[a] Mill: Closed."]),
    ("a heading below a text", "a.md", "A town.\n\n## Bridge\n\nIt is old.\n", ["[a] A town.", "[a (Bridge)] It is old."]),
    ("signs in a page", "a.html", "<p>Set max_items to 3 * 4 and <i>see</i> <a href='http://x.org'>the [old] site</a>.</p><p>Is &amp;lt; `x`</p>"
     "<table><tr><th>Key<th>Use<tr><td>a_b<td>-5 *or* C:\\x</table>",
     ["[a] Set max_items to 3 * 4 and see the [old] site.", "[a] Is &lt; `x`", "[a] a_b (key): use -5 *or* C:\\x"]),
    ("notes in a page", "a.html", "<p>Ludo <em>Farr</em>an came.<sup><a href='#n1'>[1]</a></sup></p>"
     "<ol><li>In 1993. <a href='#r1'>↑</a></li></ol>",
     ["[a] Ludo Farran came.[1]", "[a] In 1993."]),
    ("a heading without text", "a.md", "# Osk\n\nA town.\n\n## To do\n", ["[Osk] A town.", "[Osk] To do"]),
]  # fmt: skip


@every("case, name, text, expected", PROSE)
def test_headings_lists_and_lines_are_read_as_what_they_are(tmp_path, case, name, text, expected):
    assert lines_of(tmp_path / case, name, text) == expected


ENCODED = [
    ("cp1251", "Ключ от северного сарая хранит Ольга, директор школы, а насос куплен в марте.", True),
    ("koi8-r", "Мост построен в 1998 году, ключ у Ольги.", True),
    ("gb18030", "桥建于一九九八年，由米拉设计。", True),
    ("shift_jis", "図書館は月曜日に開きます。鍵は山田太郎さんが持っています。", True),
    ("euc_jp", "図書館は月曜日に開きます。鍵は山田太郎さんが持っています。", True),
    ("euc_jp", "カメラ,テレビ,ラジオ\nペン,ノート,ボール", True),
    ("iso2022_jp", "図書館は月曜日に開きます。", True),
    ("iso2022_kr", "도서관은 월요일에 문을 엽니다.", True),
    ("euc_kr", "도서관은 월요일에 문을 엽니다.", True),
    ("euc_jp", "図書館", False),
    ("shift_jis", "図書館は月曜日に開きます。", True),
    ("cp1250", "Klíč má ředitelka Jiřina Dvořáková v roce 1998, muzeum je otevřeno.", True),
    ("mac-roman", "Le musée est ouvert. La clé est gardée par Hélène Lefèvre, à côté de l'école.", True),
    ("cp1252", "El puente se abrió. La señora Muñoz guarda la llave del almacén.", True),
    ("cp1250", "Őze Gyöngyvér", False),
    ("iso-8859-2", "Klucz przechowuje Żaneta Łęcka.", False),
]


@every("encoding, text, sure", ENCODED)
def test_an_encoding_is_guessed_where_it_is_sure_and_named_where_it_is_not(tmp_path, encoding, text, sure):
    path = folder_of(tmp_path, a_DOT_txt=text.encode(encoding)) / "a.txt"
    if sure:
        assert read_document_text(path).text == text
    else:
        with pytest.raises(BadInput, match="not sure in which encoding"):
            read_document_text(path)


def test_a_file_that_was_converted_is_not_converted_again(tmp_path, monkeypatch):
    folder = folder_of(tmp_path, a_DOT_html=f"<p>{tmp_path}</p>".encode())
    first = read_documents(folder).documents
    monkeypatch.setattr(
        "kgot_lab.documents.files.process_converter", lambda _: pytest.fail("converted again")
    )
    assert read_documents(folder).documents == first


def test_what_the_converter_warns_of_is_reported(tmp_path):
    library = read_documents(folder_of(tmp_path, deep_DOT_html=b"<div>" * 5000 + b"inside"))
    assert [document.text for document in library] == ["inside"]
    assert "too deeply nested" in library.doubtful[0].reason


def test_a_folder_may_be_named_from_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder_of(tmp_path, papers__a_DOT_txt=b"A.")
    assert [document.id for document in read_documents("~/papers")] == ["a.txt#1"]
    with pytest.raises(BadInput, match="~nobody-of-that-name is not a folder"):
        read_documents("~nobody-of-that-name")


def test_hidden_files_and_folders_are_skipped_and_named(tmp_path):
    folder = folder_of(tmp_path, a_DOT_txt=b"A.", _DOT_env_DOT_txt=b"secret", _DOT_git__b_DOT_txt=b"B.")
    (folder / ".linked").symlink_to(folder, target_is_directory=True)
    (folder / "~$minutes.docx").write_bytes(b"lock")
    library = read_documents(folder)
    assert [document.id for document in library] == ["a.txt#1"]
    assert [str(remark) for remark in library.skipped] == [
        ".env.txt: a hidden file", ".git: a hidden folder", ".linked: a hidden folder", "~$minutes.docx: a hidden file",
    ]  # fmt: skip
    (folder / "a.txt").unlink()
    with pytest.raises(BadInput, match=r"could be read \(\.env\.txt: a hidden file"):
        read_documents(folder)


def test_links_are_not_followed_and_those_that_leave_the_folder_are_named(tmp_path):
    folder = folder_of(tmp_path, in__a_DOT_txt=b"A.", out__secret_DOT_txt=b"secret") / "in"
    (folder / "file.txt").symlink_to(tmp_path / "out" / "secret.txt")
    (folder / "folder").symlink_to(tmp_path / "out", target_is_directory=True)
    (folder / "again.txt").symlink_to(folder / "a.txt")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "gone.txt").symlink_to(folder / "nothing.txt")
    library = read_documents(folder)
    assert [document.text for document in library] == ["A."]
    leaving = {remark.path for remark in library.skipped if remark.reason == "a link that leaves the folder"}
    assert leaving == {"file.txt", "folder"} and len(library.skipped) == 5


def test_a_link_to_nothing_and_one_to_itself_are_named_as_what_they_are(tmp_path):
    folder = folder_of(tmp_path, a_DOT_txt=b"A.")
    for name, target in (
        ("gone.txt", "nothing.txt"),
        ("away.txt", "/no/such/place"),
        ("through.txt", "a.txt/b"),
        ("round.txt", "round.txt"),
    ):
        (folder / name).symlink_to(target)
    reasons = {remark.path: remark.reason for remark in read_documents(folder).skipped}
    found = {"a link that leads back to itself", "cannot be opened (Too many levels of symbolic links)"}
    assert reasons.pop("round.txt") in found
    assert reasons == dict.fromkeys(["gone.txt", "away.txt", "through.txt"], "a link to what is not there")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    folder = folder_of(tmp_path, a_DOT_txt=b"A.")
    os.mkfifo(folder / "pipe.txt")
    assert [remark.reason for remark in read_documents(folder).skipped] == ["not a regular file but a pipe"]


def test_one_file_has_the_passages_it_has_in_its_folder_whatever_its_name_and_behind_whatever_link(tmp_path):
    folder = folder_of(tmp_path, a_DOT_md=b"# Moon\n\nThe moon is far.")
    assert read_documents(folder / "a.md").documents == read_documents(folder).documents
    folder_of(tmp_path, _DOT_hidden_DOT_txt=b"Seen.")
    (folder / "linked.txt").symlink_to(folder / ".hidden.txt")
    for name in (".hidden.txt", "linked.txt"):
        assert [document.id for document in read_documents(folder / name)] == [f"{name}#1"]


def test_a_folder_in_which_nothing_can_be_read_is_refused_and_the_message_says_what_can(tmp_path):
    with pytest.raises(BadInput, match=r"not a folder.*\.txt.*\.pdf"):
        read_documents(tmp_path / "missing")
    with pytest.raises(BadInput, match=r"it is empty.*\.docx"):
        read_documents(tmp_path)
    (tmp_path / "a.xyz").write_bytes(b"\0\1\2" * 9)
    with pytest.raises(BadInput, match=r"a\.xyz: binary"):
        read_documents(tmp_path)


def test_without_the_converter_the_error_names_the_extra_but_plain_text_needs_none(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "markitdown", None)
    folder_of(tmp_path, a_DOT_txt=b"A.")
    assert len(read_documents(tmp_path)) == 1
    folder_of(tmp_path, b_DOT_pdf=pdf("B"))
    with pytest.raises(NotInstalled, match=r"kgot_lab\[lab\]"):
        read_documents(tmp_path)


def words(text: str) -> list[str]:
    return text.split()


def test_a_long_text_is_cut_at_paragraphs_and_nothing_is_lost():
    text = "\n\n".join(f"Paragraph {number} says: " + "some words here. " * 15 for number in range(20))
    pieces = split_passages(text)
    assert words(" ".join(pieces)) == words(text)
    assert all(len(words(piece)) <= 150 and piece.startswith("Paragraph") for piece in pieces)
    assert len(pieces) == 7  # three paragraphs of 48 words each


def test_a_long_paragraph_is_cut_at_sentences_and_a_heading_stays_with_what_follows():
    text = "# Heading\n\n" + " ".join(f"Sentence {number} has exactly six words." for number in range(60))
    pieces = split_passages(text)
    assert words(" ".join(pieces)) == words(text)
    assert pieces[0].startswith("# Heading\n\nSentence 0") and all(piece.endswith(".") for piece in pieces)
    assert max(len(words(piece)) for piece in pieces) <= 150 and len(pieces) == 3


@every(
    "text",
    ["word " * 1000, "x" * 10_000, "東京は日本にある。" * 500, "a\n" * 1000, "a,b\r\n" * 1000, "", " \n\n "],
)
def test_any_text_is_cut_into_pieces_that_fit(text):
    pieces = split_passages(text)
    assert all(len(words(piece)) <= 150 and 0 < len(piece) <= 1500 for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def title(text):
    return read_sections(text, ".md", "name")[0].title


def test_the_only_heading_of_the_highest_level_is_the_title():
    assert title("# The *end* ##\n\ntext\n\n## Other\n\nmore") == "The *end*"
    assert title("# C#") == "C#"
    assert title("#hashtag\nno heading") == "name"
    assert title("# Monday\n\none\n\n# Tuesday\n\ntwo") == "name (Monday)"
    assert len(title("# " + "#" * 200_000 + "x\ntext")) == 200


@pytest.mark.parametrize(
    "unit",
    [
        "`",
        "```\n",
        "```\n~~~\n",
        "~",
        "#",
        "# a\n",
        "# ",
        "word ",
        "x",
        " ",
        "\n ",
        "a.\n",
        "a. ",
        '. "',
        '{"a":1},',
        "a,b\n",
        "。",
        "\r",
    ],
)
@pytest.mark.parametrize("end", ["", pytest.param("x`\n", marks=pytest.mark.extended)])
def test_a_hostile_text_is_cut_in_a_time_that_grows_as_its_length(unit, end):
    text = unit * (100_000 // len(unit)) + end
    begun = time.process_time()
    [section.passages() for section in read_sections(text, ".md", "name")]
    assert time.process_time() - begun < 5, (
        "seconds of work, of which a search from each letter to the end takes dozens"
    )


@pytest.mark.parametrize("fence", ["```", "~~~~", "```sh", "   ```"])
def test_a_comment_in_a_block_of_code_is_no_heading(fence):
    closing = fence.strip().rstrip("sh")
    assert title(f"{fence}\n# install it\nmake\n{closing}\n\n# Use\n\nText.") == "Use"
    assert title(f"{fence}\r\n# install it\r\n{closing}\r\n\r\n# Use\r\n") == "Use"
    assert title(f"Text.\n\n{fence}\n# never closed") == "name"
    assert title("```inline``` code\n\n# Title\n```") == "Title"


@pytest.mark.parametrize(
    "mark",
    [
        codecs.BOM_UTF8,
        codecs.BOM_UTF16_LE,
        codecs.BOM_UTF16_BE,
        codecs.BOM_UTF32_LE,
        codecs.BOM_UTF8 + b" \n",
    ],
)
def test_a_file_with_nothing_but_a_mark_of_its_encoding_is_empty(tmp_path, mark):
    with pytest.raises(BadInput, match=r"^empty$"):
        read_document_text(folder_of(tmp_path, a_DOT_txt=mark) / "a.txt")


def test_only_a_pdf_is_said_to_hold_pictures_of_pages(tmp_path):
    with pytest.raises(BadInput, match=r"^holds no text$"):
        read_document_text(folder_of(tmp_path, a_DOT_html=b"<p></p>") / "a.html")


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text here")
def test_two_names_that_differ_in_bytes_that_are_no_text_are_two_documents(tmp_path):
    for name in (b"bad\xffname.txt", b"bad\xfename.txt"):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_text("Text.")
    library = read_documents(tmp_path)
    assert [document.id for document in library] == ["bad\\xfename.txt#1", "bad\\xffname.txt#1"]
    assert [document.title for document in library] == ["bad\\xfename", "bad\\xffname"]


@pytest.mark.skipif(sys.platform != "linux", reason="a name cannot hold control characters here")
def test_a_name_cannot_command_a_terminal(tmp_path, capsys):
    folder = folder_of(tmp_path, good_DOT_txt=b"Good.")
    (folder / "emp\x1b[31mty.txt").write_text("")
    library = read_documents(folder)
    assert "\x1b" not in f"{library!r}{library.skipped[0]}"
    assert library.skipped[0].path == "emp\x1b[31mty.txt"
    read_folder(folder)
    said = capsys.readouterr().err
    assert said.startswith("note: emp") and "\x1b" not in said
    (folder / "good.txt").unlink()
    with pytest.raises(BadInput) as refused:
        read_documents(folder)
    assert "\x1b" not in str(refused.value)
