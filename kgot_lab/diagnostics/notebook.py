"""`doctor()` for a notebook cell: what is installed, and whether a live view works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgot_lab.arguments import check_arguments
from kgot_lab.diagnostics import components
from kgot_lab.types import Json
from kgot_lab.viz.live import Live
from kgot_lab.viz.static.drawing import Drawing, draw_rect, draw_text, drawing

_WIDTH, _HEIGHT = 760, 76
_STILL = (
    "A live view takes the place of these lines when the cell runs. If you still read them after that, live views cannot",
    "draw here: see “widgets” above for what is missing, install it where JupyterLab runs, restart it and reload the page.",
    "Pictures, tables and pages work all the same.",
)


@dataclass(frozen=True)
class Checkup:
    """The findings as a table, and below it a live view that shows whether it works."""

    findings: components.Diagnosis
    live: Live = field(compare=False)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self.findings)  # type: ignore[no-untyped-call]
        self.live._ipython_display_()

    def __repr__(self) -> str:
        return repr(self.findings)


@check_arguments
def doctor(*names: str) -> Checkup:
    """Test the components, by default all, and whether a live view works in this notebook.

    Raises UnknownName for an unknown component.
    """
    return Checkup(components.diagnose(*names), Live(_still(), {"view": "probe"}, _answered))


def _answered(message: Mapping[str, Json]) -> Json:
    return {"heard": True} if "probe" in message else {}


def _still() -> Drawing:
    """Draw the lines that remain if no live view draws."""
    frame = draw_rect(0.5, 0.5, _WIDTH - 1, _HEIGHT - 1, "#fff", stroke="#999")
    lines = (draw_text(line, 12.0, float(22 + 20 * number), 13, "#222") for number, line in enumerate(_STILL))
    return drawing(" ".join(_STILL), _WIDTH, _HEIGHT, frame, *lines)
