"""The types of what is extracted from a folder of code: its structure, and the patterns that were recognised
in it.
"""

from __future__ import annotations

from kgot_lab.graph.vocabulary import ANY_TYPE, EdgeType, Ends, NodeType, Vocabulary
from kgot_lab.kgos.schemas.vocabularies import COMPUTED_SIMILARITY

_CODE = ("module", "class", "function", "method")
_PATTERNS = ("pattern", "design_pattern", "architectural_pattern", "anti_pattern")

CODE = Vocabulary(
    "the vocabulary of code",
    (
        NodeType("module", "a file of code that can be imported"),
        NodeType("class", "a class"),
        NodeType("function", "a function of a module"),
        NodeType("method", "a function of a class"),
        NodeType("folder", "a folder of files that is no module itself"),
        NodeType("package", "something that is imported and is not among the files"),
        NodeType("config", "a file of settings"),
        NodeType("document", "a file of prose"),
        NodeType("section", "what stands under a heading of a file of prose, or a part of it"),
        NodeType("pattern", "a way to put several parts together"),
        NodeType("design_pattern", "a pattern among classes and functions"),
        NodeType("architectural_pattern", "a pattern among modules and services"),
        NodeType("anti_pattern", "a common way of building that does harm"),
    ),
    (
        EdgeType(
            "imports",
            "names another module, or something of it, to use it",
            tuple(Ends("module", each) for each in (*_CODE, "package")),
        ),
        EdgeType(
            "calls",
            "runs another function, or makes an instance",
            tuple(Ends(a, b) for a in _CODE for b in (*_CODE, "package")),
        ),
        EdgeType(
            "contains",
            "holds in its text, or in its folder",
            (
                *(Ends(a, b) for a in (*_CODE, "config", "document", "folder") for b in _CODE),
                *(Ends(a, b) for a in ("folder", "module") for b in ("folder", "config", "document")),
                Ends("document", "section"),
            ),
        ),
        EdgeType("inherits_from", "is a kind of", (Ends("class", "class"), Ends("class", "package"))),
        EdgeType(
            "configures", "is a setting of", tuple(Ends("config", each) for each in (*_CODE, "package"))
        ),
        EdgeType("documents", "tells about", (Ends("document", ANY_TYPE),)),
        EdgeType(
            "pattern_instance_of",
            "is built after",
            tuple(Ends(a, b) for a in (*_CODE, *_PATTERNS) for b in _PATTERNS),
        ),
        EdgeType(
            "pattern_alternative_to",
            "is another pattern for the same job as",
            tuple(Ends(a, b) for a in _PATTERNS for b in _PATTERNS),
            symmetric=True,
        ),
        COMPUTED_SIMILARITY,
    ),
)
