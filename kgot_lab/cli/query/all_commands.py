"""The group `query` with all its commands: importing the modules puts theirs into it."""

from kgot_lab.cli.query import answer_commands as words
from kgot_lab.cli.query import concepts
from kgot_lab.cli.query import graph_commands as whole
from kgot_lab.cli.query.shared import queries

__all__ = ["concepts", "queries", "whole", "words"]
