"""Notebooks as a course: what each is about, a front page, and pages on which the live views live without
Python.
"""

from kgot_lab.viz.course import write_course

__all__ = ["write_course"]
