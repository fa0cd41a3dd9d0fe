"""Which tools are offered with what is at hand, and which are not and why; tools of other packages come in by
an entry point.
"""

import sys
from contextlib import closing
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from support.zips import zip_of

from kgot_lab.errors import BadInput, ToolFailed
from kgot_lab.llm.budget import Budget, Spending
from kgot_lab.llm.recorded import Scripted
from kgot_lab.sandbox import Calculator
from kgot_lab.tools.offered import ENTRY_POINTS, ToolResources, offered_tools
from kgot_lab.types import Document

LLM = Scripted([])


class Adder:
    """Computes nothing."""

    def compute(self, code: str) -> str:
        return code


def names(offered) -> list[str]:
    return [tool.name for tool in offered.tools]


def reasons(offered) -> dict[str, str]:
    return {each.name: each.why for each in offered.missing}


@pytest.fixture
def attached(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.zip").write_bytes(zip_of({"x.txt": "x"}))
    return [tmp_path / "a.txt", tmp_path / "b.zip"]


def test_with_nothing_at_hand_nothing_is_offered_and_each_tool_says_what_it_needs():
    offered = offered_tools(ToolResources(environment={}), others=())
    assert names(offered) == []
    assert reasons(offered) == {
        "search": "there are no documents to search; give some (--documents DIR)",
        "inspect_file": "no files are attached; attach some (--attach FILE)",
        "extract_zip": "no files are attached; attach some (--attach FILE)",
        "image_question": "no model that sees is given; name one (--vision-model MODEL)",
        "ask_search_agent": "it needs a model to read pages with",
        "wikipedia": "the web is not to be asked; allow it (--web)",
        "llm_query": "no model is given",
        "python": "no sandbox to run Python in is given",
    }
    assert repr(offered).startswith(
        "<Offered: none>\n  not search: there are no documents to search; give some (--documents DIR)\n"
    )


def test_with_everything_at_hand_every_tool_is_offered(attached, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    have = {"llm": LLM, "vision": LLM, "computer": Adder(), "web": True, "unpack_into": tmp_path / "out"}
    with pytest.warns(UserWarning, match="by words alone"):
        offered = offered_tools(
            ToolResources([Document("d", "text")], attached, **have, environment={"BRAVE_API_KEY": "key"}),
            others=(),
        )
    every = [
        "search",
        "inspect_file",
        "extract_zip",
        "image_question",
        "ask_search_agent",
        "wikipedia",
        "llm_query",
        "python",
    ]
    assert names(offered) == every and offered.missing == ()
    assert all(tool.description and tool.arguments["required"] for tool in offered.tools)
    assert "key" not in repr(ToolResources(environment={"BRAVE_API_KEY": "key"}))


def test_the_web_is_not_asked_unless_it_is_allowed_but_a_folder_can_stand_in_for_it(tmp_path):
    (tmp_path / "page.html").write_text("<p>page</p>")
    closed = offered_tools(ToolResources(llm=LLM, environment={"BRAVE_API_KEY": "key"}), others=())
    assert "a folder that stands in for it" in reasons(closed)["ask_search_agent"]
    offline = offered_tools(ToolResources(llm=LLM, mirror=tmp_path), others=())
    assert names(offline) == ["ask_search_agent", "llm_query"]
    (tmp_path / "page.html").unlink()
    with pytest.raises(BadInput, match="holds no files"):
        offered_tools(ToolResources(llm=LLM, mirror=tmp_path), others=())


def test_a_missing_key_or_package_is_named(monkeypatch):
    keyless = offered_tools(ToolResources(llm=LLM, web=True, engine="serpapi", environment={}), others=())
    assert (
        reasons(keyless)["ask_search_agent"]
        == "the search engine serpapi needs a key: set the environment variable SERPAPI_API_KEY"
    )
    monkeypatch.setitem(sys.modules, "ddgs", None)
    assert (
        "ddgs: pip install 'kgot_lab[web]'"
        in reasons(offered_tools(ToolResources(llm=LLM, web=True, environment={}), others=()))[
            "ask_search_agent"
        ]
    )
    monkeypatch.setitem(sys.modules, "httpx", None)
    assert (
        "httpx: pip install 'kgot_lab[web]'"
        in reasons(offered_tools(ToolResources(web=True, environment={}), others=()))["wikipedia"]
    )


def test_a_zip_file_needs_no_more_than_itself_and_a_wrong_path_is_the_callers_mistake(attached, tmp_path):
    offered = offered_tools(ToolResources(attachments=attached), others=())
    read, unzip = offered.tools
    assert unzip(file="b.zip").text == "b.zip holds 1 file:\nb.zip/x.txt"
    assert read(file="b.zip/x.txt").text == "x"
    assert (
        reasons(offered_tools(ToolResources(attachments=attached[:1]), others=()))["extract_zip"]
        == "no zip file is attached"
    )
    with pytest.raises(BadInput, match="not there"):
        offered_tools(ToolResources(attachments=[tmp_path / "gone.txt"]), others=())


def test_pictures_are_looked_at_where_there_are_files_or_the_web(attached):
    pytest.importorskip("httpx")
    why = reasons(offered_tools(ToolResources(vision=LLM), others=()))["image_question"]
    assert "attach files (--attach FILE), or allow the web (--web)" in why
    for have in (
        ToolResources(vision=LLM, attachments=attached),
        ToolResources(vision=LLM, web=True, environment={}),
    ):
        assert "image_question" in names(offered_tools(have, others=()))


def test_speech_to_text_is_not_offered_where_dollars_are_limited_and_its_price_is_not_known(tmp_path):
    (tmp_path / "talk.mp3").write_bytes(b"ID3 sound")
    have = {"attachments": [tmp_path / "talk.mp3"], "web": True, "environment": {"OPENAI_API_KEY": "key"}}
    limited = Spending(Budget(dollars=1))
    assert "speech to text" not in reasons(offered_tools(ToolResources(**have, spending=limited), others=()))
    offered = offered_tools(ToolResources(**have, spending=limited, speech="gpt-next"), others=())
    why = "what gpt-next charges for writing down speech is not known, so dollars cannot be limited"
    assert "inspect_file" in names(offered) and why in reasons(offered)["speech to text"]
    with pytest.raises(ToolFailed, match=why):
        {tool.name: tool for tool in offered.tools}["inspect_file"](file="talk.mp3")


def test_speech_goes_out_only_where_the_web_may_be_asked(tmp_path):
    (tmp_path / "talk.mp3").write_bytes(b"ID3 sound")
    (read,) = offered_tools(
        ToolResources(attachments=[tmp_path / "talk.mp3"], environment={"OPENAI_API_KEY": "key"}), others=()
    ).tools
    with pytest.raises(ToolFailed, match=r"OPENAI_API_KEY is set and the web may be asked \(--web\)"):
        read(file="talk.mp3")


def test_python_is_offered_where_a_sandbox_opens_and_else_the_reason_is_told(monkeypatch):
    with closing(Calculator()) as computer:
        offered = offered_tools(ToolResources(computer=computer), others=())
        assert (
            names(offered) == ["python"] or "no sandbox works on this machine" in reasons(offered)["python"]
        )
    monkeypatch.setattr("kgot_lab.sandbox.KINDS", {})
    nowhere = offered_tools(ToolResources(computer=Calculator()), others=())
    assert names(nowhere) == [] and reasons(nowhere)["python"].startswith("no sandbox works on this machine")
    assert "apt install bubblewrap" in reasons(nowhere)["python"]


# --- other packages ---

PLUGIN = '''
from kgot_lab.errors import BadInput
from kgot_lab.tools.tool import Result, TextTool


class Tides:
    """Tells tides."""

    name = "tides"
    description = "Tells when the tide is high."
    arguments = {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"], "additionalProperties": False}

    def __init__(self, at_hand):
        if "TIDES_KEY" not in at_hand.environment:
            raise BadInput("set the environment variable TIDES_KEY")

    def __call__(self, /, **arguments):
        return Result(f"high at noon in {arguments['port']}")


def echo(at_hand):
    return TextTool("echo", "Says it again.", {"text": "what"}, lambda text: Result(text))


def search(at_hand):
    return TextTool("llm_query", "Takes the place of another.", {"text": "what"}, lambda text: Result(text))


def nothing(at_hand):
    return None


def broken(at_hand):
    raise RuntimeError("boom\\x1b[31m")


def told(at_hand):
    raise RuntimeError("401 for header Bearer " + at_hand.environment.get("TOLD_API_KEY", ""))


def refused(at_hand):
    raise BadInput("401 for header Bearer " + at_hand.environment.get("TOLD_API_KEY", ""))
'''
ENTRIES = ["tides = lab_tides:Tides", "echo = lab_tides:echo", "again = lab_tides:search", "nothing = lab_tides:nothing",
           "broken = lab_tides:broken", "told = lab_tides:told", "refused = lab_tides:refused",
           "gone = lab_tides:gone", "missing = lab_no_such_module:Tool"]  # fmt: skip


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with tools, installed as pip does it: a module, and beside it a folder that says what it
    offers.
    """
    (tmp_path / "lab_tides.py").write_text(PLUGIN)
    about = tmp_path / "lab_tides-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-tides\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n" + "\n".join(ENTRIES) + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield Path(tmp_path)
    sys.modules.pop("lab_tides", None)


def test_a_tool_is_added_by_one_class_and_an_entry_point(installed):
    offered = offered_tools(ToolResources(llm=LLM, environment={"TIDES_KEY": "x"}))
    assert names(offered) == ["llm_query", "tides", "echo"]
    assert next(t for t in offered.tools if t.name == "tides")(port="Oslo").text == "high at noon in Oslo"


def test_a_tool_of_another_package_that_fails_is_listed_with_its_error_and_ends_nothing(installed):
    why = reasons(offered_tools(ToolResources(llm=LLM, environment={})))
    assert why["tides"] == "set the environment variable TIDES_KEY"
    assert why["again"] == "there is a tool called 'llm_query' already"
    assert why["nothing"].startswith("a tool is a function, or what search(documents)")
    assert (
        why["broken"]
        == "the entry point lab_tides:broken of the package lab-tides failed (RuntimeError: boom\ufffd[31m)"
    )
    assert "AttributeError" in why["gone"] and "ModuleNotFoundError" in why["missing"]


def test_nothing_of_another_package_is_loaded_before_tools_are_asked_for(installed):
    assert {entry.name for entry in entry_points(group=ENTRY_POINTS)} >= {"tides", "broken"}
    assert "lab_tides" not in sys.modules


def test_the_key_that_a_failing_tool_of_another_package_shows_is_not_told(installed):
    why = reasons(offered_tools(ToolResources(llm=LLM, environment={"TOLD_API_KEY": "zx81-spectrum-key"})))
    assert why["told"].endswith("(RuntimeError: 401 for header Bearer …)")
    assert why["refused"] == "401 for header Bearer …"
