"""What a read statement in SPARQL says by itself: variables that are bound to constants, whatever the graph
holds.
"""

from __future__ import annotations

import re

from kgot_lab.stores.protocol import OwnWords
from kgot_lab.stores.statements import LITERAL, blanked

_BOUND = re.compile(
    rf"\(\s*(?:{LITERAL}|<[^<>\s]*>|\w*:[\w%.-]+)(?:@\w+|\^\^\S+?)?\s+AS\s+[?$](\w+)\s*\)", re.I | re.S
)


def sparql_words(statement: str) -> OwnWords:
    """The variables that are given constants; a statement with nothing but BIND, VALUES and FILTER in its
    braces looks at nothing.
    """
    text = re.sub(r"\bVALUES\b[^{]*\{[^}]*\}", " ", blanked(statement), flags=re.I)
    changed = 1
    while changed:  # from the innermost brackets outwards
        text, changed = re.subn(r"\b(?:BIND|FILTER)?\s*\([^()]*\)", " ", text, flags=re.I)
    inside = re.sub(
        r"\b(?:BIND|FILTER|UNION|OPTIONAL|MINUS)\b",
        " ",
        text[text.find("{") :] if "{" in text else "",
        flags=re.I,
    )
    return OwnWords(
        re.search(r"[^\s{}.;]", inside) is not None,
        frozenset(found[1] for found in _BOUND.finditer(statement)),
    )
