"""Nothing is said by colour alone: what has the same shape, sign, dash or hatch has colours that every reader
tells apart.

How a colour looks to readers with a colour deficiency follows G. M. Machado, M. M. Oliveira and L. A. F.
Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE TVCG 15 (6), 2009,
table 1, severity 1.0, on linear RGB.
"""

from __future__ import annotations

import re
from itertools import combinations, product

import numpy as np
import pytest
from support.every import every

from kgot_lab.graph.encoding import COLOURS, UNLABELLED_LOOK, label_look
from kgot_lab.viz import analogy_picture
from kgot_lab.viz.explorer.hits import RETRIEVER_COLOURS as RETRIEVERS
from kgot_lab.viz.graph.marks import MARKS, line_style
from kgot_lab.viz.live import script, style
from kgot_lab.viz.plots.figure import (
    _LINES,
    BASELINE_PEN,
    BEST_PEN,
    FAINT,
    INK,
    MUTED,
    Pen,
    bar_pen,
    line_pen,
)
from kgot_lab.viz.plots.questions import _PENS as ENDS
from kgot_lab.viz.plots.retrieval import BAND_PENS, LOSS_COLOUR, WIN_COLOUR
from kgot_lab.viz.plots.runs import EDGES, NODES, VOTES

EYES = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
    "full colour": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "grey": ((0.2126729, 0.7151522, 0.0721750),) * 3,
}
IN_COLOUR = tuple(eye for eye in EYES if eye != "grey")
TO_XYZ = np.array(
    [(0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041)]
)
WHITE = TO_XYZ.sum(axis=1)  # D65
ENOUGH = 15.0  # CIE76; a just noticeable difference is about 2.3 (Mahy, Van Eycken and Oosterlinck 1994)
ENOUGH_IN_GREY = 8.0  # of lightness L*, from 0 to 100
READABLE, VISIBLE = 4.5, 3.0  # WCAG 2.2, success criteria 1.4.3 and 1.4.11


def linear(colour):
    """A colour as linear RGB, each part from 0 to 1 (IEC 61966-2-1)."""
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = np.array([int(digits[at : at + 2], 16) for at in (0, 2, 4)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def seen(colour, eye):
    """A colour as this eye sees it, in CIE L*a*b* (CIE 15)."""
    ratios = TO_XYZ @ np.clip(np.array(EYES[eye]) @ linear(colour), 0, 1) / WHITE
    x, y, z = np.where(ratios > 216 / 24389, np.cbrt(ratios), (24389 / 27 * ratios + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one, other, eye):
    """How far apart an eye sees two colours: the length of their difference in L*a*b* (CIE76)."""
    return float(np.linalg.norm(seen(one, eye) - seen(other, eye)))


def contrast(one, other="#FFFFFF"):
    """The contrast ratio of two colours, from 1 to 21 (WCAG 2.2, "contrast ratio" and "relative luminance")."""
    dark, light = sorted(float(linear(colour) @ (0.2126, 0.7152, 0.0722)) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def confused(looks, eyes=tuple(EYES)):
    """Which looks an eye takes for each other; a look is a colour and whatever else tells it apart."""
    return [
        (one, other, eye)
        for (one, (first, says)), (other, (second, too)) in combinations(looks.items(), 2)
        for eye in eyes
        if says == too and distance(first, second, eye) < (ENOUGH_IN_GREY if eye == "grey" else ENOUGH)
    ]


def of_pens(pens):
    """Pens by name as looks, to be told apart as parts of a bar: by hatch, and white from all colours."""
    return {name: (pen.colour, (pen.hatch, pen.colour == "#FFFFFF")) for name, pen in pens.items()}


# --- the measures themselves ---


def test_white_black_and_grey_are_what_the_standards_say():
    assert seen("#FFFFFF", "full colour") == pytest.approx([100, 0, 0], abs=0.01)
    assert seen("#FF0000", "full colour") == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    assert contrast("#000000") == pytest.approx(21) and contrast("#767676") == pytest.approx(4.54, abs=0.01)
    for eye, grey in product(EYES, ("#000000", "#777777", "#FFFFFF")):
        assert distance(grey, grey, eye) == 0
        assert seen(grey, eye) == pytest.approx(seen(grey, "full colour"), abs=0.05)


def test_a_bad_palette_is_found_bad():
    red_green = {"up": ("#7A6A00", ""), "down": ("#C00000", "")}
    assert confused(red_green, IN_COLOUR) == [("up", "down", "deuteranopia")]
    assert confused({"one": ("#0072B2", ""), "two": ("#008B8B", "")}, IN_COLOUR) == [
        ("one", "two", "tritanopia")
    ]
    assert confused({"one": ("#CC6677", ""), "two": ("#888888", "")}, ("protanopia", "full colour")) == [
        ("one", "two", "protanopia")
    ]
    assert confused({"one": ("#E69F00", ""), "two": ("#56B4E9", "")}) == [("one", "two", "grey")]
    assert confused({name: (colour, name) for name, (colour, _) in red_green.items()}) == []
    assert contrast("#F0E442") < VISIBLE < contrast("#888888") < READABLE


# --- graphs ---


def test_labels_have_looks_that_every_reader_tells_apart():
    assert confused({number: (colour, "") for number, colour in enumerate(COLOURS)}, IN_COLOUR) == []
    looks = [(look.colour, look.corners) for look in (*map(label_look, range(35)), UNLABELLED_LOOK)]
    assert confused(dict(enumerate(looks)), IN_COLOUR) == []
    assert confused(dict(enumerate(looks[:9]))) == []


def test_what_a_write_did_is_told_by_sign_by_dash_and_by_colour():
    marks = list(MARKS.values())
    assert len({mark.sign for mark in marks}) == len(MARKS) and "" not in {mark.sign for mark in marks}
    assert confused({name: (mark.colour, mark.dashes) for name, mark in MARKS.items()}) == []
    assert confused({name: (mark.colour, "") for name, mark in MARKS.items()}, IN_COLOUR) == []


@every("style", [*MARKS.values(), line_style(faint=False), line_style(faint=True)], ids=str)
def test_lines_stand_out_from_the_paper_and_their_words_can_be_read(style):
    assert contrast(style.colour) >= VISIBLE and contrast(style.ink) >= READABLE


def test_the_name_of_a_mark_can_be_read_on_its_disc():
    assert all(contrast("#FFFFFF", mark.ink) >= READABLE for mark in MARKS.values())


def variable(name):
    """A colour of the light theme by the name that the live views give it."""
    return re.search(rf"--kl-{name}: (#\w+);", style())[1]


def test_the_ring_around_what_has_the_focus_and_the_rims_of_controls_stand_out_from_the_paper():
    rings = re.findall(r":focus-visible \{ outline: (?:[3-9]px) solid (#\w+)", style())
    assert ".kl-button {" in style() and "border: 1px solid var(--kl-border)" in style()
    rims = [variable("border")]
    assert rings and all(contrast(colour) >= VISIBLE for colour in (*rings, *rims))


def test_a_live_graph_has_the_marks_of_its_picture():
    for name, mark in MARKS.items():
        assert (variable(f"{name}-line").upper(), variable(name).upper()) == (mark.colour, mark.ink)
        dashes = re.search(rf"MARK_DASHES = \{{.*?\b{name}: \[([\d, ]+)\]", script())
        assert name == "changed" or (dashes[1].replace(",", "") if dashes else None) == mark.dashes
        assert f'{name}: "{mark.sign}"' in script()


def test_retrievers_are_told_apart_in_colour_and_by_their_pattern():
    assert confused({retriever: (colour, "") for retriever, colour in RETRIEVERS.items()}, IN_COLOUR) == []
    patterns = [
        re.search(rf"\.kl-x-{retriever} \{{ background: ([^}}]*)\}}", style())[1] for retriever in RETRIEVERS
    ]
    assert len({re.sub(r"#\w+", "", pattern) for pattern in patterns}) == len(RETRIEVERS)


# --- plots ---


def test_lines_of_a_plot_are_told_apart_by_marker_and_stand_out_from_the_paper():
    pens = [*map(line_pen, range(8)), BASELINE_PEN, BEST_PEN]
    assert confused({number: (pen.colour, pen.marker) for number, pen in enumerate(pens)}) == []
    pens = (*_LINES, BASELINE_PEN.colour, BEST_PEN.colour, FAINT, WIN_COLOUR, LOSS_COLOUR)
    assert all(contrast(colour) >= VISIBLE for colour in pens)
    assert contrast(INK) >= READABLE and contrast(MUTED) >= READABLE
    assert NODES.marker != EDGES.marker and NODES.dashes != EDGES.dashes
    assert len({pen.marker for pen in BAND_PENS.values()}) == len(BAND_PENS)


@pytest.mark.parametrize(
    "pens",
    [dict(enumerate(map(bar_pen, range(8)))), VOTES, ENDS],
    ids=["parts", "votes", "ends"],
)
def test_parts_of_a_bar_are_told_apart_by_hatch_and_have_a_rim(pens):
    assert confused(of_pens(pens)) == []
    fills = [pen for pen in pens.values() if isinstance(pen, Pen)]
    assert all(contrast(pen.fill["edgecolor"], pen.colour) >= VISIBLE for pen in fills)


def test_many_parts_of_a_bar_differ_in_colour_where_their_hatch_is_the_same():
    assert confused(of_pens(dict(enumerate(map(bar_pen, range(56))))), IN_COLOUR) == []


# --- two texts ---


def test_the_words_of_a_structure_view_can_be_read_and_its_two_measures_told_apart():
    inks = (analogy_picture._INK, analogy_picture._MUTED, analogy_picture.MORE, analogy_picture.LESS)
    assert all(contrast(ink) >= READABLE for ink in inks)
    bars = {"texts": (analogy_picture._TEXTS_COLOUR, ""), "skeletons": (analogy_picture.SKELETONS, "")}
    assert confused(bars, IN_COLOUR) == []
