"""Ask a person about a step of a run, in a notebook or on the terminal."""

from __future__ import annotations

import typer

from kgot_lab.api.ask import in_notebook
from kgot_lab.arguments import check_arguments
from kgot_lab.llm.keys import mask_known_keys
from kgot_lab.loop.approval import Deny, Proposal
from kgot_lab.text.cleaning import printable_line


@check_arguments
def approve(proposal: Proposal) -> bool | str | Deny:
    """Ask whether a step of a run is approved, changed, or denied for a reason.

    Pass it to a run, `lab.ask(…, approve=lab.approve)`. A notebook asks below the cell, by a line of input,
    since ipykernel routes a click to the shell that made the button, which the cell holds until it ends.
    """
    shown = mask_known_keys(f"{proposal.what}: {proposal.about}\n{proposal.text}").split("\n")
    typer.echo("\n".join(["", *map(printable_line, shown)]), err=True)
    while True:
        answer = _ask_line("approve [a], change [c] or deny [d]?", "a").strip().lower()
        if answer in ("a", "approve", "y", "yes"):
            return True
        if answer in ("c", "change"):
            return _ask_line("in its place, on one line", proposal.text)
        if answer in ("d", "deny", "n", "no"):
            return Deny(_ask_line("why", Deny().reason))


def _ask_line(question: str, default: str) -> str:
    if in_notebook():
        return input(f"{question} ") or default
    return str(typer.prompt(question, default=default, err=True))
