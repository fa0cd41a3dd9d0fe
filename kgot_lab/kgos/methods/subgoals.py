"""A goal of several parts, split where it says so: conservative, since "read and analyse" may be one step or
two.
"""

from __future__ import annotations

import re

from kgot_lab.text.words import stem

_AFTER = re.compile(r"\bafter (?!that\b|this\b|which\b|wards\b)", re.I)
_JOINTS = re.compile(
    r"\s*(?:[,;]|\band then\b|\bthen\b|\band\b|\bafter(?: that| this| which|wards)\b|\bbefore\b)\s*", re.I
)
_OPENING = re.compile(
    r"^(?:first(?:ly)?|finally|lastly|next|also|(?:i|we) want(?: to)?|how (?:do|can) (?:i|we)|how to|help me|please|to)\b\s*",
    re.I,
)
_ANCHORED = 3  # words at the beginning of a part among which its verb is looked for
# What a part has to say to be a step of its own (ours); "and JSON files" says none of them, and goes with the
# part before.
_ACTIONS = frozenset(
    map(
        stem,
        """
        add analyse analyze annotate answer ask authenticate automate batch break browse build cache call check choose chunk clean
        classify cluster collect combine compare compose compress compute configure connect convert count crawl create cut debug
        decompose deduplicate deliver deploy describe design detect distil divide draft draw edit embed encode encrypt enrich
        evaluate execute explain export extract fetch fill filter find fix follow format fuse gather generate get give go group
        handle hold identify import improve index ingest inspect join judge keep label launch lay let limit link load log look mail
        make map mask measure mend merge monitor move normalise normalize notify optimise optimize order organise parse plan post
        prepare process prompt protect publish pull push put query rank rate read recognise recognize record redact reduce refactor
        register release remember remove report request rerank reserve resolve retrieve retry return review revise rewrite route run
        sample sanitise sanitize save scan schedule score scrape scrub search secure segment select send serve set ship show sort
        split start stop store stream structure summarise summarize sweep synthesise synthesize tag take talk tell test tokenize
        tokenise track train transcribe transform translate try tune turn understand update upload validate verify visualise
        visualize watch weigh write
        """.split(),
    )
)


def subgoals(goal: str) -> tuple[str, ...]:
    """The parts of a goal in the order in which they are to be done: "A and B", "A, then B" and "B after A"
    are A, B (decision C-M4).

    It is split at commas and at the words and, then, after, before; a part without an action verb goes with
    the part before it, or with the next where it is the first. Where no part has one, each is a sub-goal.
    """
    halves = _AFTER.split(goal.strip(" .?!"))
    said = [part for half in reversed(halves) for part in _JOINTS.split(half)]
    parts = [part for part in (_OPENING.sub("", each.strip(" .?!")).strip() for each in said) if part]
    if not any(map(_acts, parts)):
        return tuple(parts)
    steps: list[str] = []
    waiting = ""
    for part in parts:
        if _acts(part):
            steps.append(f"{waiting} and {part}" if waiting else part)
            waiting = ""
        elif steps:
            steps[-1] += f" and {part}"
        else:
            waiting = f"{waiting} and {part}" if waiting else part
    return tuple(steps)


def _acts(part: str) -> bool:
    return any(stem(word) in _ACTIONS for word in re.findall(r"[a-z]+", part.lower())[:_ANCHORED])
