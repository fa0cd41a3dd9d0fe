"""The tables of false alarms, and the shares by which a precision is expected, derived from the result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.structure.false_alarms import TIMES
from kgot_lab.analogy.expected_precision import BandShares, expected_precision
from kgot_lab.evaluation.tables import Cell, Grid
from kgot_lab.similarity.delta import BANDS
from kgot_lab.types import Json

_KINDS = ("analogous", "others")


def kept_alarms(path: Path) -> list[dict[str, Json]]:
    """The rows of the result."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def measured_shares(rows: Sequence[Mapping[str, Json]]) -> dict[bool, BandShares]:
    """The means over the sets of the shares of dev pairs that get an edge in each band, without and with
    a verifier.
    """
    found = {}
    for verified in (False, True):
        by = {
            what: [
                _shares(row, verified)
                for row in rows
                if row.get("pairs of") == what and row["part"] == "develop"
            ]
            for what in _KINDS
        }
        means = (
            {name: round(fmean(some[name] for some in sets), 4) for name in BANDS} for sets in by.values()
        )
        found[verified] = BandShares(
            *({name: share for name, share in mean.items() if share} for mean in means)
        )
    return found


def _shares(row: Mapping[str, Json], verified: bool) -> dict[str, float]:
    """The share of a row's pairs that get an edge in each band; with a verifier, less those of the looked at
    that it refuses.
    """
    shares = {}
    for name in BANDS:
        stood = row["stand"][name] / row["looked"][name] if verified and row["looked"][name] else 1.0
        shares[name] = row["edges"][name] / row["pairs"] * stood
    return shares


def alarm_grid(rows: Sequence[Mapping[str, Json]]) -> Grid:
    """How many of a hundred pairs of unrelated texts get an edge, by what the texts have left and how long
    they are.
    """
    lines = [row for row in rows if "by" in row]
    parts = {(row["texts"], row["by"], row["from"], row["part"]): row for row in lines}
    made = []
    for texts, by, start in dict.fromkeys((row["texts"], row["by"], row["from"]) for row in lines):
        dev, test = (parts.get((texts, by, start, part)) for part in ("develop", "locked"))
        name = f"{texts}, {start} words or more {'left of the skeleton' if by == 'left' else 'long'}"
        known = dev or test
        made.append(tuple(map(Cell, (name, _percent(dev), _percent(test), _high(known), _stand(known)))))
    columns = (
        "both texts have",
        "edges, dev",
        "edges, test",
        "of them in band high",
        "of them a verifier lets stand",
    )
    title = "Unrelated texts that get an edge at the specified thresholds, of 100 pairs; each row ends where the next begins"
    return Grid(title, columns, tuple(made))


def twelve_grid(rows: Sequence[Mapping[str, Json]]) -> Grid:
    """How many of the 66 pairs of twelve unrelated texts get an edge."""
    made = []
    for row in rows:
        if "twelve" in row:
            numbers = (f"{row['edges of 66'][name]:.0f}" for name in ("2.5 %", "median", "97.5 %", "most"))
            made.append(
                tuple(map(Cell, (row["texts"], f"{row['mean']:.1f}", *numbers, f"{row['high']:.0%}")))
            )
    columns = ("twelve of the", "mean", "2.5 %", "median", "97.5 %", "most", "in band high")
    return Grid(
        f"Edges among the 66 pairs of twelve unrelated texts, drawn {TIMES:,} times", columns, tuple(made)
    )


def precision_grid(rows: Sequence[Mapping[str, Json]]) -> Grid:
    """The precision to expect of the edges of a test part, from the shares of the dev parts, beside
    that found.
    """
    measured, made = measured_shares(rows), []
    by = {(row["set"], row["pairs of"]): row for row in rows if row.get("part") == "locked" and "set" in row}
    for name in dict.fromkeys(name for name, _ in by):
        right, wrong = by[name, "analogous"], by[name, "others"]
        prevalence = right["analogous"] / right["judged"]
        for verified in (False, True):
            ours, theirs = _shares(right, verified), _shares(wrong, verified)
            passing = {band: prevalence * ours[band] + (1 - prevalence) * theirs[band] for band in BANDS}
            kept = {band: round(share * right["judged"]) for band, share in passing.items()}
            expected = expected_precision(
                kept, right["judged"], prevalence=prevalence, shares=measured[verified]
            )
            for band, share in expected.items():
                found = prevalence * ours[band] / passing[band]
                title = f"{name.removesuffix(' pairs')}{', verified' * verified}, {band}"
                made.append(
                    tuple(
                        map(
                            Cell,
                            (title, f"{kept[band]:,}", f"{prevalence:.3%}", f"{share:.3%}", f"{found:.3%}"),
                        )
                    )
                )
    columns = ("test part, band", "edges", "analogous pairs", "expected to be right", "found right")
    return Grid(
        "The precision to expect at the prevalence of a graph, and the precision found", columns, tuple(made)
    )


def _percent(row: Mapping[str, Json] | None) -> str:
    return f"{100 * sum(row['edges'].values()) / row['pairs']:.0f}" if row else ""


def _high(row: Mapping[str, Json] | None) -> str:
    return f"{row['edges']['high'] / max(1, sum(row['edges'].values())):.0%}" if row else ""


def _stand(row: Mapping[str, Json] | None) -> str:
    return f"{sum(row['stand'].values()) / max(1, sum(row['looked'].values())):.0%}" if row else ""
