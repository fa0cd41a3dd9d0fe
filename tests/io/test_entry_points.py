"""Stores, retrievers and modes of one's own by name: a package with an entry point for each, as pip installs it."""

from __future__ import annotations

import sys
from contextlib import closing
from importlib.metadata import EntryPoint

import pytest
from support.command_line import replies, run_here
from support.loop_script import ADA, FEW, WRITE, call, scripted, votes
from support.openai_server import openai_server

import kgot_lab as lab
from kgot_lab.errors import BadInput, OutOfMemory, TraceError, UnknownName
from kgot_lab.io.entry_points import errors_of
from kgot_lab.loop.events import Chose
from kgot_lab.loop.trace import record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import empty_store, reopen_store
from kgot_lab.types import Query

PACKAGE = '''
from kgot_lab import Stage, ranked
from kgot_lab.errors import StoreUnavailable
from kgot_lab.stores import InMemory


class Drawer(InMemory):
    """A store that is an in-memory one with a label."""

    def __init__(self, where=None, *, label="", secret=""):
        super().__init__()
        self.where, self.label = where, label


def longest(documents):
    """A retriever that ranks the longest text first."""
    return Stage("longest", lambda ranking: ranked(ranking.query, {d.id: len(d.text) for d in documents}, "longest"))


def needs_password(where=None):
    raise StoreUnavailable("the drawer is locked: set DRAWER_KEY")


def boom(*_):
    raise RuntimeError("boom at bolt://me:secret@host \\x1b[31m")


def leave(*_):
    raise SystemExit(3)


def full(*_):
    raise MemoryError


def nothing(*_):
    return 42
'''
MODES = """
from kgot_lab.loop.events import Answered
from kgot_lab.loop.modes.voting import Voting


class Shouting(Voting):
    def conclude(self, candidates):
        yield self.run.record(Answered, text="LONDON!", forced=False)


Loudly = Shouting
"""
STORES = [
    "drawer = lab_drawer:Drawer", "locked = lab_drawer:needs_password", "boom = lab_drawer:boom", "leave = lab_drawer:leave",
    "full = lab_drawer:full", "nothing = lab_drawer:nothing", "gone = lab_drawer:gone", "missing = lab_no_such_module:Store",
]  # fmt: skip
RETRIEVERS = ["longest = lab_drawer:longest", "absent = lab_no_such_module:find", "gone = lab_drawer:gone"]


def install(folder, name, **groups):
    """What pip leaves of a package: a folder that says what it offers."""
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [line for group, entries in groups.items() for line in (f"[kgot_lab.{group}]", *entries)]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    (tmp_path / "lab_drawer.py").write_text(PACKAGE)
    (tmp_path / "lab_shouting.py").write_text(MODES)
    install(tmp_path, "lab-drawer", stores=STORES, retrievers=RETRIEVERS)
    install(tmp_path, "lab-shouting", modes=["loud = lab_shouting:Loudly", "gone = lab_shouting:Gone"])
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("lab_drawer", "lab_shouting"):
        sys.modules.pop(name, None)


# --- stores ---


@pytest.mark.parametrize(
    ("where", "options", "expected"),
    [
        ("drawer", {}, (None, "")),
        ("drawer:top", {}, ("top", "")),
        ("drawer:top/left.sqlite", {}, ("top/left.sqlite", "")),  # whatever its end, it is not SQLite's
        ("drawer://host:80/x", {}, ("//host:80/x", "")),
        ("drawer:", {"label": "mine"}, (None, "mine")),
        ("drawer", {"at": "top", "label": "mine"}, ("top", "mine")),
    ],
)
def test_a_store_of_ones_own_is_opened_by_its_name_with_a_place_and_options(
    installed, where, options, expected
):
    with closing(lab.open_store(where, **options)) as store:
        assert type(store).__name__ == "Drawer" and (store.where, store.label) == expected


def test_a_question_grows_a_graph_in_a_store_of_ones_own(installed):
    llm = scripted(vote=votes(*"IIIRRR"), tools=call(), write=WRITE, parse={"answer": "1815"})
    run = lab.ask("When was Ada born?", ADA, llm, preset=FEW, store="drawer:top")
    assert run.answer == "1815" and lab.verify(run) is None
    for open_again in (empty_store, reopen_store):
        with closing(open_again("drawer:top")) as store:
            assert store.where == "top"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("locked", "the drawer is locked: set DRAWER_KEY"),
        ("boom", r"lab_drawer:boom of the package lab-drawer failed \(RuntimeError: boom at bolt://…@host"),
        ("leave", r"of the package lab-drawer failed \(SystemExit: 3"),
        ("gone", r"of the package lab-drawer failed \(AttributeError"),
        ("missing", r"lab_no_such_module:Store of the package lab-drawer failed \(ModuleNotFoundError"),
        ("nothing", "of the package lab-drawer makes what has dialect, write, .*, not 42"),
    ],
)
def test_a_store_that_fails_is_told_with_its_package_and_breaks_no_other(installed, name, told):
    with pytest.raises(lab.LabError, match=told) as caught:
        lab.open_store(name)
    assert "secret" not in str(caught.value) and "\x1b" not in str(caught.value)
    with pytest.raises(OutOfMemory):
        lab.open_store("full")
    lab.open_store("drawer").close()


def test_an_option_that_the_store_does_not_know_is_refused(installed):
    with pytest.raises(BadInput, match="unknown argument 'colour'"):
        lab.open_store("drawer", colour="red")


def test_a_place_is_given_once_and_a_name_that_nobody_offers_lists_those_that_are(installed):
    with pytest.raises(BadInput, match="says itself where the store is"):
        lab.open_store("drawer:top", at="bottom")
    with pytest.raises(UnknownName, match=r"did you mean 'drawer'\?.*drawer.*sqlite"):
        lab.open_store("drawr")


def test_nothing_of_another_package_is_loaded_before_it_is_opened(installed):
    lab.open_store("in_memory").close()
    with pytest.raises(UnknownName):
        lab.open_store("elsewhere")
    assert "lab_drawer" not in sys.modules


def test_a_name_that_is_taken_is_left_out_and_told(installed, monkeypatch):
    (installed / "other").mkdir()
    install(
        installed / "other",
        "lab-other",
        stores=["drawer = lab_drawer:nothing", "sqlite = lab_drawer:nothing"],
    )
    monkeypatch.syspath_prepend(installed / "other")
    with (
        pytest.warns(UserWarning) as told,
        pytest.raises(BadInput, match=r"makes what has .*, not 42"),
    ):  # the first of the path counts
        lab.open_store("drawer")
    messages = " ".join(str(warning.message) for warning in told)
    assert (
        "another of the stores has the name 'sqlite'" in messages
        and "package lab-drawer is left out" in messages
    )
    lab.open_store("sqlite").close()


# --- retrievers ---


def test_a_retriever_of_ones_own_is_a_system_of_the_benchmark(installed):
    data = lab.load_dataset("cookbook")
    with pytest.warns(UserWarning, match="left out"):
        stages = lab.systems(data)
    ranking = stages["longest"]().search(Query("which is the longest?"))
    assert len(ranking.hits[0].id) and ranking.system == "longest"
    report = lab.bench(data, systems={"longest": stages["longest"], "bm25": stages["bm25"]})
    assert set(report.scores) == {"longest", "bm25"}


def test_a_retriever_that_cannot_be_loaded_is_told_with_its_package_and_leaves_the_others(installed):
    data = lab.load_dataset("cookbook")
    with pytest.warns(UserWarning) as told:
        stages = lab.systems(data)
    messages = [str(warning.message) for warning in told]
    assert len(messages) == 2 and all("of the package lab-drawer failed" in message for message in messages)
    assert "longest" in stages and "bm25" in stages and "absent" not in stages


# --- modes ---

SEARCH = lab.search(ADA, bm25(ADA))
ONCE = FEW.but(steps=1, votes=1, reading="whole graph")
SAID = {"vote": votes("I"), "tools": call(), "write": {"statements": []}}


def stopped_after(kind, events, path):
    """A run on file that was stopped after an event of a kind."""
    walk = record(events, path)
    next(event for event in walk if isinstance(event, kind))
    walk.close()


def test_a_mode_of_a_package_is_taken_by_its_name_and_found_again_by_verify_replay_and_resume(installed):
    events = list(
        lab.think("Where?", scripted(**SAID), lab.open_store("in_memory"), [SEARCH], ONCE, mode="loud")
    )
    assert events[-1].text == "LONDON!" and events[0].custom == {"mode": "Shouting"}
    assert lab.verify(events) is None and list(lab.replay(events))[-1].text == "LONDON!"
    assert lab.ask("Where?", ADA, scripted(**SAID), preset=ONCE, mode="loud").answer == "LONDON!"
    path = installed / "run.jsonl"
    stopped_after(Chose, iter(events), path)
    resumed = lab.resume(path, lab.open_store("in_memory"), lab.Resources([SEARCH], scripted(**SAID)))
    assert list(resumed)[-1].text == "LONDON!"


@pytest.mark.parametrize(
    ("name", "error", "told"),
    [
        ("lout", UnknownName, r"unknown mode 'lout'; did you mean 'loud'\? Known: gone, loud"),
        ("gone", BadInput, r"lab_shouting:Gone of the package lab-shouting failed \(AttributeError"),
    ],
)
def test_a_mode_that_nobody_offers_or_that_fails_is_told(installed, name, error, told):
    with pytest.raises(error, match=told):
        lab.think("Where?", scripted(), lab.open_store("in_memory"), [SEARCH], ONCE, mode=name)


def test_without_its_package_a_run_says_its_mode_and_how_it_is_verified(installed, monkeypatch):
    events = list(
        lab.think("Where?", scripted(**SAID), lab.open_store("in_memory"), [SEARCH], ONCE, mode="loud")
    )
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder != str(installed)])
    told = r"in the mode Shouting: give its class, mode=Shouting, as in lab\.verify\(run, mode=Shouting\).*kgot_lab\.modes"
    with pytest.raises(TraceError, match=told):
        lab.verify(events)
    assert lab.verify(events, mode=sys.modules["lab_shouting"].Shouting) is None


def test_the_command_line_asks_resumes_and_verifies_in_a_mode_of_a_package(installed, monkeypatch):
    monkeypatch.chdir(installed)
    (installed / "papers").mkdir()
    (installed / "papers" / "ada.md").write_text("# Ada Lovelace\n\nAda Lovelace was born in London.\n")
    search = call("Ada Lovelace")
    said = [*({"choice": "INSERT", "text": "where"},) * 3, search, {"statements": []}]
    options = ["--documents", "papers", "--set", "steps=1", "--trace", "run.jsonl", "--mode"]
    with openai_server(*replies(*said)) as server:
        model = ["--model", f"{server.url}#m"]
        assert run_here("ask", "Where?", *options, "loud", "--max-calls", 4, *model).code == 1
        resumed = run_here("resume", "run.jsonl", "--max-calls", 99)
        assert "Answer: LONDON!" in resumed.out, resumed.err
        refused = run_here("ask", "Where?", *options[:-2], "new.jsonl", "--mode", "quiet", *model)
    assert refused.code == 1 and "unknown mode 'quiet'" in refused.err
    assert "all identical" in run_here("verify", "run.jsonl").out
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder != str(installed)])
    assert "this run was made in the mode Shouting" in run_here("verify", "run.jsonl").err


def test_no_key_of_the_environment_is_in_what_is_told_of_a_package_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAWER_KEY", "canary-0123456789")
    with (
        pytest.raises(BadInput, match=r"drawer:open failed \(RuntimeError: no luck with … and …\)") as caught,
        errors_of(EntryPoint("drawer", "drawer:open", "kgot_lab.stores")),
    ):
        raise RuntimeError("no luck with canary-0123456789 and sk-proj-0123456789abc")
    assert caught.value.__suppress_context__  # which a traceback would show
