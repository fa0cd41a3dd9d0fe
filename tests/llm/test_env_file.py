"""Keys from a file .env: set where nothing is set, and shown nowhere."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgot_lab.errors import LLMError
from kgot_lab.llm import connect
from kgot_lab.llm.keys import load_env

CANARY = "sk-canary-0123456789abcdef"
TEXT = f"""\ufeff# keys of the lab
LAB_ONE={CANARY}
export LAB_TWO = 'with a # and spaces'   # what it is for

LAB_THREE="double"
LAB_FOUR=plain # a comment
LAB_FIVE=
LAB_SIX=a=b#c
"""


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / ".env").write_text(TEXT, encoding="utf-8")
    return tmp_path / ".env"


def test_every_line_is_a_variable_and_their_names_are_told(path: Path) -> None:
    assert load_env(path) == ("LAB_ONE", "LAB_TWO", "LAB_THREE", "LAB_FOUR", "LAB_FIVE", "LAB_SIX")
    values = [os.environ[f"LAB_{number}"] for number in ("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX")]
    assert values == [CANARY, "with a # and spaces", "double", "plain", "", "a=b#c"]


def test_what_is_set_stays_even_when_it_is_empty(path: Path) -> None:
    os.environ.update({"LAB_ONE": "mine", "LAB_TWO": ""})
    assert load_env(path) == ("LAB_THREE", "LAB_FOUR", "LAB_FIVE", "LAB_SIX")
    assert (os.environ["LAB_ONE"], os.environ["LAB_TWO"]) == ("mine", "")


def test_the_file_of_this_folder_is_read_and_none_is_no_error(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_env()[0] == "LAB_ONE"
    assert load_env(tmp_path / "nowhere") == () == load_env(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        CANARY,
        f"LAB_KEY {CANARY}",
        f"LAB_KEY='{CANARY}' {CANARY}",
        f"LAB-KEY={CANARY}",
        f"LAB_KEY={CANARY}\0",
    ],
)
def test_a_line_that_is_none_is_told_by_its_number_alone_and_the_others_are_read(
    tmp_path: Path, line: str
) -> None:
    (tmp_path / ".env").write_text(f"LAB_OTHER=1\n{line}\nLAB_LAST='it'\n")
    with pytest.warns(UserWarning, match=r"^line 2 of .*\.env was not read") as caught:
        assert load_env(tmp_path / ".env") == ("LAB_OTHER", "LAB_LAST")
    assert CANARY not in str(caught[0].message) and "LAB_KEY" not in os.environ


def test_a_quote_that_is_not_closed_takes_the_next_line_with_it_and_both_are_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"LAB_OTHER=1\n\nLAB_KEY='{CANARY}\nLAB_NEXT='it'\nLAB_LAST=1\n")
    with pytest.warns(UserWarning, match=r"^lines 3, 4 of .*\.env were not read") as caught:
        assert load_env(tmp_path / ".env") == ("LAB_OTHER", "LAB_LAST")
    assert CANARY not in str(caught[0].message)


def test_a_value_in_quotes_may_have_several_lines(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(
        b'LAB_PEM="-----BEGIN\r\nabc=\r\n-----END"  # a key\r\nLAB_OTHER=a\xe2\x80\xa8b\n'
    )
    assert load_env(tmp_path / ".env") == ("LAB_PEM", "LAB_OTHER")
    assert (os.environ["LAB_PEM"], os.environ["LAB_OTHER"]) == ("-----BEGIN\nabc=\n-----END", "a\u2028b")


def test_where_a_key_is_missing_the_line_that_was_not_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / ".env").write_text(f"# keys\nOPENAI_API_KEY: {CANARY}\n\n?\n")
    with pytest.raises(LLMError, match=r"OPENAI_API_KEY \(lines 2, 4 of \.env were not read"):
        connect("openai:gpt-4o")


def test_names_that_steer_programs_are_passed_over(tmp_path: Path) -> None:
    names = "PATH LD_PRELOAD PYTHONPATH HTTPS_PROXY https_proxy SSL_CERT_FILE REQUESTS_CA_BUNDLE".split()
    names += "JAVA_TOOL_OPTIONS OPENAI_BASE_URL OLLAMA_HOST HF_ENDPOINT OPENAI_CUSTOM_HEADERS".split()
    for name in names:
        os.environ.pop(name, None)
    (tmp_path / ".env").write_text(
        "".join(f"{name}=evil\n" for name in names) + "TAVILY_API_KEY=1\nHF_TOKEN=1\nNEO4J_URI=bolt://x\n"
    )
    assert load_env(tmp_path / ".env") == ("TAVILY_API_KEY", "HF_TOKEN", "NEO4J_URI")
    assert "evil" not in os.environ.values()


def test_what_is_no_text_is_told_without_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"LAB_KEY=\xff\xfe")
    with pytest.warns(UserWarning, match=r"\.env cannot be read"):
        assert load_env(tmp_path / ".env") == ()


def test_a_quote_without_an_end_in_a_long_file_costs_no_more_time_than_its_lines(tmp_path):
    import time

    from kgot_lab.llm.keys import unparsed_lines_note

    file = tmp_path / ".env"
    file.write_text("A='x\n" + 'B="1"\n' * 100_000, encoding="utf-8")
    began = time.process_time()
    assert "line 1 of" in unparsed_lines_note(file)
    assert time.process_time() - began < 20  # its time was the square of the lines
