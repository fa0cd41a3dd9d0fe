"""Talk with an expert in a notebook, and step through how an answer came about."""

from kgot_lab.viz.experts import TalkView, ThoughtView, show_talk, show_thought

__all__ = ["TalkView", "ThoughtView", "show_talk", "show_thought"]
