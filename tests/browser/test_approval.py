"""Approval in a notebook, with a real kernel: a line of input below a cell that runs."""

from browser.lab import expect, open_notebook, output_of, wait_for_kernel

CELL = """
import kgot_lab as lab
from kgot_lab.loop.approval import Deny, Proposal
[lab.approve(Proposal("write", 'add("a", "b", "c")', "search(query='a')")), lab.approve(Proposal("write", "add('x')"))]
"""


def test_a_step_is_changed_and_the_next_denied_while_the_cell_runs(page, lab):
    open_notebook(page, lab.scratch([CELL.strip()]))
    wait_for_kernel(page)
    page.evaluate(
        "() => { jupyterapp.commands.execute('notebook:run-cell'); }"
    )  # it ends after the last line
    area = output_of(page, 0)
    for question, answer in (
        ("approve [a], change", "c"), ("in its place", 'add("a", "b", "d")'), ("approve [a], change", "d"), ("why", "no need"),
    ):  # fmt: skip
        expect(area.locator(".jp-Stdin-prompt").last).to_contain_text(question)
        area.locator(".jp-Stdin-input").last.fill(answer)
        area.locator(".jp-Stdin-input").last.press("Enter")
    expect(area).to_contain_text("write: search(query='a')")
    expect(area).to_contain_text("""['add("a", "b", "d")', Deny(reason='no need')]""")
