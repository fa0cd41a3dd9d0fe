"""The 89 flags of the old toolkit and where each is now: the source of the table in docs/query.md."""

from __future__ import annotations

from collections.abc import Mapping


# Of each category its flags, and for each the command, or the command and the option, that does it. "*"
# stands for every question.
def flags(same: str = "", **elsewhere: str) -> dict[str, str]:
    """Map flags to what does it now: those of the same name, then others (an underscore is a dash)."""
    return {f"--{name}": name for name in same.split()} | {
        f"--{name.replace('_', '-')}": place for name, place in elsewhere.items()
    }


FLAGS: Mapping[str, Mapping[str, str]] = {
    "Discovery": flags("find emerge discover stats whats-new list schema random"),
    "Intent-Based": flags("want-to can-it how-does compose-for alternatives why-not optimize-for"),
    "Exploration": flags(
        "trace related dependencies used-by explore", depth="explore --depth", max_results="* --max-results"
    ),
    "Analysis": flags("impact critical bottleneck coverage gaps risk"),
    "Filtering": flags(
        "",
        type="list --type",
        edge_type="list --edge-type",
        min_edges="list --min-edges",
        max_edges="list --max-edges",
        property="list --property",
        has_property="list --has-property",
        dimension="list --dimension",
        threshold="* --threshold",
    ),
    "ML Intelligence": flags("recommend similar-to rank explore-smart"),
    "Export": flags(
        "", format="* --format", output="* --output", json="* --json", csv="* --csv", markdown="* --markdown"
    ),
    "Cross-KG": flags(
        "",
        db="GRAPH",
        manual="--with",
        auto="--with",
        unified="--with",
        merge_results="search",
        compare="compare",
    ),
    "Pattern Mapping": flags(
        "",
        pattern="pattern-code --pattern",
        implementation="pattern-code",
        arsenal="pattern-code",
        source_file="pattern-code --source-file",
        coverage="coverage",
    ),
    "Impact Analysis": flags(
        "",
        direction="impact --direction",
        forward="impact --direction",
        backward="impact --direction",
        max_depth="impact --max-depth",
        risk_threshold="impact --risk-threshold",
    ),
    "Criticality": flags(
        "",
        metric="critical --metric",
        degree="critical --metric",
        betweenness="critical --metric",
        pagerank="critical --metric",
        top_k="critical --top-k",
    ),
    "Configuration": flags(
        "",
        verbose="* --verbose",
        quiet="* --quiet",
        color="* --color",
        no_color="* --no-color",
        timeout="* --timeout",
        cache="--no-cache",
        parallel="batch --parallel",
        dry_run="--dry-run",
    ),
    "Dimensional": flags(
        "score-dimensions dimension-profile compare-dimensions dimension-range auto-dimensions"
    ),
    "Natural Language": flags("ask explain summarize context follow-up"),
    "Batch Operations": flags(
        "batch pipeline validate",
        **{"import": "import-graph"},
        export_graph="export-graph",
        estimate_cost="estimate-cost",
    ),
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
