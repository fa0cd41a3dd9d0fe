"""Slides from a notebook: one file that needs nothing else."""

from kgot_lab.viz.slides.deck import slides_of, write_slides

__all__ = ["slides_of", "write_slides"]
