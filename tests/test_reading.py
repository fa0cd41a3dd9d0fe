"""A text in UTF-16 or UTF-32, with a mark of its byte order or without, is read as what it says or refused by
name.
"""

from __future__ import annotations

import gzip

import pytest
from support.every import every

from kgot_lab.benchmark.questions.question import load_questions
from kgot_lab.documents.files import extract_text
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import from_beir
from kgot_lab.io.files import detect_wide_encoding, read_regular_text, read_tables
from kgot_lab.stores.files import read_graph, read_named_graph

WIDE = ("utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
PLAIN, SPOKEN = "Ada was born in London.\nShe wrote of engines.\n", "Zoë lives in Köln, Łódź and Αθήνα.\n"
ASIAN = "這是一個沒有空格的句子我們看看它會怎麼樣被讀出來而且還要更長一些纔行"
FILES = {
    "more.jsonl": ('{"question": "Who is Zoë?", "answer": "Ada"}\n', load_questions),
    "questions.jsonl": ('{"question": "Who?", "answer": "Ada"}\n', load_questions),
    "settings.yaml": ("model: one\n", read_regular_text),
}


@every("encoding", WIDE)
@every(
    "text", (PLAIN, SPOKEN, "a", PLAIN * 1_000 + "𝔸" * 10), ids=("english", "european", "one letter", "long")
)
def test_a_text_is_told_by_its_mark_or_by_its_zeros(text, encoding):
    assert text.encode(encoding).decode(detect_wide_encoding(text.encode(encoding))) == text


def test_a_nul_in_another_text_makes_no_utf_16():
    for data in (b"a\0b", b"ab\0c", b"ab\0", b"\0ab", b"Hello\0", b"a\0b\0cdef"):
        assert detect_wide_encoding(data) == ""


@pytest.mark.parametrize("encoding", ("utf-32-le", "utf-32-be"))
def test_asian_letters_in_utf_32_are_told_too(encoding):
    assert detect_wide_encoding(ASIAN.encode(encoding)) == encoding


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_ours_in_another_encoding_is_refused_by_name(tmp_path, name, encoding):
    text, read = FILES[name]
    (tmp_path / name).write_bytes(text.encode(encoding))
    with pytest.raises(
        BadInput,
        match=rf"{name} is a text in {encoding[:6].upper()}, and only UTF-8 is read: save it as UTF-8",
    ):
        read(tmp_path / name)
    (tmp_path / name).write_bytes(text.encode("utf-8" if name == "settings.yaml" else "utf-8-sig"))
    assert read(tmp_path / name)


@pytest.mark.parametrize("encoding", WIDE)
def test_a_graph_in_another_encoding_is_read_and_the_encoding_told(tmp_path, encoding):
    (tmp_path / "g.csv").write_bytes("source,type,target\nZoë,knows,Ada\n".encode(encoding))
    read = read_named_graph(tmp_path / "g.csv")
    assert read.graph.ids == ("Zoë", "Ada") and f"read as {encoding[:6]}" in read.note


@pytest.mark.parametrize("encoding", ("utf-32", "utf-32-le", "utf-32-be"))
def test_graphml_in_utf_32_is_refused_by_name(tmp_path, encoding):
    (tmp_path / "graph.graphml").write_bytes('<?xml version="1.0"?><graphml/>'.encode(encoding))
    with pytest.raises(BadInput, match=r"graph\.graphml is a text in UTF-32"):
        read_graph(tmp_path / "graph.graphml")


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("ending", ("", ".gz"))
def test_a_data_set_in_another_encoding_is_refused_by_name(tmp_path, encoding, ending):
    (tmp_path / "qrels").mkdir()
    parts = {
        "corpus.jsonl": '{"_id": "d", "text": "Ada"}\n', "queries.jsonl": '{"_id": "q", "text": "Who?"}\n', "qrels/test.tsv": "q\td\t1\n",
    }  # fmt: skip
    pack = gzip.compress if ending else bytes
    for odd in parts:
        for name, text in parts.items():
            (tmp_path / f"{name}{ending}").write_bytes(
                pack(text.encode(encoding if name == odd else "utf-8"))
            )
        with pytest.raises(BadInput, match=f"is a text in {encoding[:6].upper()}"):
            from_beir(tmp_path)


@every("encoding", WIDE)
@every("extension", (".txt", ".md", ".csv", ".json"))
def test_a_document_is_read_as_what_it_says(extension, encoding):
    found = extract_text(PLAIN.encode(encoding), extension)
    assert found.text == PLAIN
    assert found.remark == ("" if encoding in ("utf-16", "utf-32") else f"without a mark; read as {encoding}")


@pytest.mark.parametrize("encoding", ("utf-16-le", "utf-16-be"))
def test_a_document_that_no_rule_can_tell_is_refused(encoding):
    with pytest.raises(
        BadInput, match=r"in no character set that can be told: save it as UTF-8|binary, not text"
    ):
        extract_text(ASIAN.encode(encoding), ".txt")


def test_a_document_in_windows_1252_is_still_read():
    assert extract_text("Zoë paid 5 € in Köln\n".encode("cp1252"), ".txt").text == "Zoë paid 5 € in Köln\n"


def test_tables_of_a_text_file_are_read_by_their_headings(tmp_path):
    path = tmp_path / "tables.txt"
    path.write_text("# a note\n[first]\na | b\n\nc | | d\n[second]\n[e] f | g\n", encoding="utf-8")
    assert read_tables(path) == {"first": [["a", "b"], ["c", "", "d"]], "second": [["[e] f", "g"]]}
