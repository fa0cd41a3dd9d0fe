"""The 89 flags of the old toolkit and where each is now: the source of the table in docs/query.md."""

from __future__ import annotations

from collections.abc import Mapping

# Of each category its flags, and for each the command, or the command and the option, that does it. "*"
# stands for every question.
FLAGS: Mapping[str, Mapping[str, str]] = {
    "Discovery": {
        "--find": "find",
        "--emerge": "emerge",
        "--discover": "discover",
        "--stats": "stats",
        "--whats-new": "whats-new",
        "--list": "list",
        "--schema": "schema",
        "--random": "random",
    },
    "Intent-Based": {
        "--want-to": "want-to",
        "--can-it": "can-it",
        "--how-does": "how-does",
        "--compose-for": "compose-for",
        "--alternatives": "alternatives",
        "--why-not": "why-not",
        "--optimize-for": "optimize-for",
    },
    "Exploration": {
        "--trace": "trace",
        "--related": "related",
        "--dependencies": "dependencies",
        "--used-by": "used-by",
        "--explore": "explore",
        "--depth": "explore --depth",
        "--max-results": "* --max-results",
    },
    "Analysis": {
        "--impact": "impact",
        "--critical": "critical",
        "--bottleneck": "bottleneck",
        "--coverage": "coverage",
        "--gaps": "gaps",
        "--risk": "risk",
    },
    "Filtering": {
        "--type": "list --type",
        "--edge-type": "list --edge-type",
        "--min-edges": "list --min-edges",
        "--max-edges": "list --max-edges",
        "--property": "list --property",
        "--has-property": "list --has-property",
        "--dimension": "list --dimension",
        "--threshold": "* --threshold",
    },
    "ML Intelligence": {
        "--recommend": "recommend",
        "--similar-to": "similar-to",
        "--rank": "rank",
        "--explore-smart": "explore-smart",
    },
    "Export": {
        "--format": "* --format",
        "--output": "* --output",
        "--json": "* --json",
        "--csv": "* --csv",
        "--markdown": "* --markdown",
    },
    "Cross-KG": {
        "--db": "GRAPH",
        "--manual": "--with",
        "--auto": "--with",
        "--unified": "--with",
        "--merge-results": "search",
        "--compare": "compare",
    },
    "Pattern Mapping": {
        "--pattern": "pattern-code --pattern",
        "--implementation": "pattern-code",
        "--arsenal": "pattern-code",
        "--source-file": "pattern-code --source-file",
        "--coverage": "coverage",
    },
    "Impact Analysis": {
        "--direction": "impact --direction",
        "--forward": "impact --direction",
        "--backward": "impact --direction",
        "--max-depth": "impact --max-depth",
        "--risk-threshold": "impact --risk-threshold",
    },
    "Criticality": {
        "--metric": "critical --metric",
        "--degree": "critical --metric",
        "--betweenness": "critical --metric",
        "--pagerank": "critical --metric",
        "--top-k": "critical --top-k",
    },
    "Configuration": {
        "--verbose": "* --verbose",
        "--quiet": "* --quiet",
        "--color": "* --color",
        "--no-color": "* --no-color",
        "--timeout": "* --timeout",
        "--cache": "--no-cache",
        "--parallel": "batch --parallel",
        "--dry-run": "--dry-run",
    },
    "Dimensional": {
        "--score-dimensions": "score-dimensions",
        "--dimension-profile": "dimension-profile",
        "--compare-dimensions": "compare-dimensions",
        "--dimension-range": "dimension-range",
        "--auto-dimensions": "auto-dimensions",
    },
    "Natural Language": {
        "--ask": "ask",
        "--explain": "explain",
        "--summarize": "summarize",
        "--context": "context",
        "--follow-up": "follow-up",
    },
    "Batch Operations": {
        "--batch": "batch",
        "--pipeline": "pipeline",
        "--validate": "validate",
        "--import": "import-graph",
        "--export-graph": "export-graph",
        "--estimate-cost": "estimate-cost",
    },
}
NOTES: Mapping[str, str] = {
    "--db": "the graph is named first",
    "--manual": "a graph of any origin: `--with NAME=GRAPH`",
    "--auto": "a folder of code: `--with NAME=FOLDER`",
    "--unified": "all graphs that are named are asked as one",
    "--merge-results": "one hit for a thing that several graphs know",
    "--arsenal": "all patterns with their code",
    "--implementation": "the code of a pattern",
    "--forward": "`--direction forward`",
    "--backward": "`--direction backward`",
    "--degree": "`--metric degree`",
    "--betweenness": "`--metric betweenness`",
    "--pagerank": "`--metric pagerank`",
    "--cache": "always on; `--no-cache` reads again",
}


def flag_table() -> str:
    """Format the table as Markdown: a row a category, its flags grouped by where they are now."""
    lines = ["| category | flag: where it is now |", "|---|---|"]
    for category, flags in FLAGS.items():
        groups: dict[str, list[str]] = {}
        for flag, place in flags.items():
            name, _, option = place.partition(" ")
            if place == flag[2:]:
                where = "a question of that name"
            elif option == flag or place == flag:
                where = "an option of " + ("any question" if name in ("*", flag) else f"`{name}`")
            else:
                where = f"`{place}`" + (f" ({NOTES[flag]})" if flag in NOTES else "")
            groups.setdefault(where, []).append(f"`{flag}`")
        lines.append(
            f"| {category} | "
            + "; ".join(f"{', '.join(some)}: {where}" for where, some in groups.items())
            + " |"
        )
    return "\n".join(lines)
