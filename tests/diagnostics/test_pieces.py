"""The doctor: every piece is tried for real, and what is missing is said with the way to get it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

from kgot_lab.cli.app import main
from kgot_lab.diagnostics import components as pieces
from kgot_lab.diagnostics.components import (
    COMPONENTS,
    Finding,
    check_components,
    find_chromium,
    server_python,
)
from kgot_lab.errors import LabError, ModelMissing, NoSandbox, NotInstalled, UnknownName
from kgot_lab.llm.local import require_engine
from kgot_lab.llm.model_file import MODEL_VARIABLE, find_model

REPOSITORY = Path(__file__).parents[2]
OURS = Path(sysconfig.get_path("data")) / "share" / "jupyter" / "labextensions"
needs_widgets = pytest.mark.skipif(
    not (OURS / "anywidget").is_dir(), reason="anywidget is not installed: pip install 'kgot_lab[lab]'"
)


def no_sandbox() -> str:
    raise NoSandbox("no sandbox works: apt install bubblewrap")


def no_extra() -> str:
    raise NotInstalled("lab", "markitdown")


def broken() -> str:
    raise ImportError("libgomp.so.1: cannot open shared object file")


def fine() -> str:
    return "works"


def run(monkeypatch, some):
    monkeypatch.setattr(pieces, "COMPONENTS", some)
    monkeypatch.setattr(sys, "argv", ["kgot-lab", "doctor"])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.extended
def test_every_kind_of_store_that_is_installed_works():
    stores = [piece for piece in COMPONENTS if "store" in piece[0] or "Postgre" in piece[0]]
    found = [*check_components(stores)]
    assert len(found) == 5 and all(each.works or "pip install" in each.said for each in found), found


@pytest.mark.extended
def test_each_piece_is_tried_for_real(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # the model is tried by the tests marked live
    monkeypatch.setenv(MODEL_VARIABLE, str(tmp_path / "no.gguf"))
    findings = {finding.piece: finding for finding in check_components()}
    assert list(findings) == [piece for piece, _, _ in COMPONENTS]
    assert all(finding.works for finding in findings.values() if finding.needed), findings
    assert "100 questions and 994 passages" in findings["bundled data"].said
    assert "Ada Lovelace born in London" in findings["in-memory store"].said
    assert not findings["local model"].works and "no.gguf" in findings["local model"].said


@pytest.mark.live
# the engine leaves /dev/null open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_local_model_is_tried_for_real():
    try:
        require_engine()
        find_model()
    except (ModelMissing, NotInstalled) as error:
        pytest.skip(f"no local model here: {error}")
    finding = next(check_components([piece for piece in COMPONENTS if piece[0] == "local model"]))
    assert finding.works and "tokens a second" in finding.said


def test_a_missing_needed_piece_is_said_with_the_way_to_get_it_and_is_a_failure(monkeypatch, capsys):
    assert run(monkeypatch, (("sandbox", no_sandbox, True), ("data", fine, True))) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("MISSING") and "apt install bubblewrap" in out[0] and out[1].startswith("ok")


@pytest.mark.extended
def test_nbconvert_is_tried_by_making_a_page():
    pytest.importorskip("nbconvert")
    (finding,) = pieces.diagnose("exports").findings
    assert finding.works and "nbconvert" in finding.said


def test_a_missing_piece_that_is_not_needed_is_no_failure(monkeypatch, capsys):
    assert run(monkeypatch, (("documents", no_extra, False),)) == 0
    out = capsys.readouterr().out
    assert out.startswith("missing") and "pip install 'kgot_lab[lab]'" in out


def test_a_piece_that_is_broken_is_named_and_the_others_are_still_tried():
    found = list(check_components((("embeddings", broken, False), ("data", fine, True))))
    assert not found[0].works and "libgomp" in found[0].said and "install it again" in found[0].said
    assert found[1] == Finding("data", True, "works", True)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The Python of a real environment in which nothing is installed."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


@pytest.fixture
def shared(tmp_path):
    """The Python of a real environment that has our packages, and not what they put beside them for
    JupyterLab.
    """
    venv.create(tmp_path / "shared", with_pip=False)
    python = tmp_path / "shared" / "bin" / "python"
    (Path(ask(python, "import sysconfig; print(sysconfig.get_path('purelib'))")) / "ours.pth").write_text(
        sysconfig.get_path("purelib")
    )
    return python


def ask(python, code, **variables):
    """What a program prints in another Python, which finds this package and nothing of the user's Jupyter."""
    nowhere = str(python.parent / "nowhere")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("J")}
    environment = {**inherited, "PYTHONPATH": str(REPOSITORY), "JUPYTER_DATA_DIR": nowhere, **variables}
    return subprocess.run(
        [python, "-c", code], env=environment, cwd=python.parent, capture_output=True, text=True, check=True
    ).stdout.strip()


def widgets(python, **variables):
    code = "from kgot_lab.diagnostics.components import diagnose; print(diagnose('widgets'))"
    return ask(python, code, **variables)


def test_what_live_views_need_is_named_when_nothing_of_it_is_installed(bare):
    said = ask(
        bare,
        "from kgot_lab.diagnostics.components import diagnose; print(diagnose('notebooks', 'widgets', 'exports'))",
    ).splitlines()
    names = ["notebooks", "widgets", "exports"]
    assert [line.split()[:2] for line in said] == [["missing", name] for name in names]
    assert "anywidget, ipywidgets and jupyterlab_widgets" in said[1] and "nbconvert" in said[2]
    assert all("pip install 'kgot_lab[lab]'" in line for line in said)


@needs_widgets
def test_each_part_that_jupyterlab_lacks_is_named_until_it_is_there(shared):
    folder = shared.parent.parent / "share" / "jupyter" / "labextensions"
    both = widgets(shared)
    assert both.startswith("missing")
    assert "lacks its part of anywidget and jupyterlab_widgets" in both
    assert str(folder) in both
    assert f"Do: {shared} -m pip install --force-reinstall --no-deps anywidget jupyterlab_widgets" in both
    assert "another environment" not in both
    shutil.copytree(OURS / "anywidget", folder / "anywidget")
    one = widgets(shared)
    assert "lacks its part of jupyterlab_widgets. Do:" in one
    shutil.copytree(OURS / "@jupyter-widgets", folder / "@jupyter-widgets")
    assert widgets(shared).startswith("ok") and str(shared.parent.parent) not in widgets(shared)


@needs_widgets
def test_a_notebook_server_of_another_environment_is_said_to_be_one(bare):
    with subprocess.Popen(
        [bare, "-c", "input()"], stdin=subprocess.PIPE
    ) as server:  # it started our kernel, as far as we are told
        said = widgets(Path(sys.executable), JPY_PARENT_PID=str(server.pid))
        server.communicate(b"\n")
    assert f"the JupyterLab of {bare.parent.parent} lacks" in said
    assert f"it is another environment than this notebook's kernel, {sys.prefix}" in said
    assert f"Do: {bare} -m pip install" in said


@pytest.mark.parametrize("parent", ["", "no number", "999999999", str(os.getppid())])
def test_a_kernel_whose_server_cannot_be_told_looks_in_its_own_environment(parent, monkeypatch):
    monkeypatch.setenv("JPY_PARENT_PID", parent)
    assert server_python().name.startswith("python")


def test_a_server_that_is_no_python_is_not_asked_for_packages(monkeypatch):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as editor:
        monkeypatch.setenv("JPY_PARENT_PID", str(editor.pid))
        assert server_python() == Path(sys.executable)
        editor.communicate(b"")


def test_a_browser_is_found_by_any_of_its_names_and_missing_with_the_way_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="apt install chromium"):
        find_chromium()
    (finding,) = pieces.diagnose("browser").findings
    assert not finding.works and not finding.needed and "apt install chromium" in finding.said
    (tmp_path / "google-chrome").symlink_to(sys.executable)
    assert find_chromium() == str(tmp_path / "google-chrome")


def test_every_extra_that_is_recommended_is_one_of_ours():
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert {"lab", "test"} <= set(extras)
    for package in ("jupyterlab", "anywidget", "ipywidgets", "nbconvert"):
        assert any(line.startswith(package) for line in extras["lab"]), package
    assert any(line.startswith("playwright") for line in extras["test"])


def test_a_cell_shows_the_findings_as_a_table_that_holds_text_only():
    evil = "<script>alert(1)</script>"
    tried = [pieces.COMPONENTS[0], (evil, no_sandbox, True), ("documents", no_extra, False)]
    told = pieces.Diagnosis(tuple(pieces.check_components(tried)))
    html = told._repr_html_()
    assert "1 of 3 pieces work" in html
    assert "✓ works" in html and "✗ missing, needed" in html and "○ missing, optional" in html
    assert "<script" not in html and "&lt;script&gt;" in html
    assert repr(told).splitlines()[0].startswith("ok       bundled data")
    assert "apt install bubblewrap" in repr(told)


def test_an_unknown_piece_is_said_to_be_one_with_the_names_there_are():
    with pytest.raises(UnknownName, match="did you mean 'widgets'"):
        pieces.diagnose("widget")


@pytest.mark.parametrize(
    "error", [MemoryError(), ImportError("libgomp.so.1: Cannot allocate memory"), RuntimeError("MemoryError")]
)
def test_want_of_memory_is_no_broken_installation(error):
    def short():
        raise error

    (found,) = check_components([("local model", short, False)])
    assert "too little memory" in found.said and "install it again" not in found.said
