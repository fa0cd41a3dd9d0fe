"""An event as a line or two of plain text; it is told in kgot_lab.loop.telling."""

from kgot_lab.loop.telling import line

__all__ = ["line"]
