"""Whether every edge of 2,000 generated files is read, or told as left out: random graphs in every form.

python -m benchmarks.graph_files.generate_files [--files 2000] [--seed 0] [--keep FOLDER]

Graphs are random and seeded: with and without direction, parallel edges, loops, isolated nodes, names in several
scripts, values of odd types. NetworkX, igraph, pandas, pyoxigraph, SciPy, sqlite3 and json write them. An edge
counts as read if its two ends are those of the graph. Of a graph that a writer refuses the same one without odd
values is written. Figures go to benchmarks/results/graph_files/generated.md.
"""

import argparse
from pathlib import Path


def main() -> None:
    """Parse the arguments, and write and read the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a folder for the files that are not read")
    options = parser.parse_args()
    from benchmarks.graph_files.generated_graphs import write_and_read  # after the help, since it loads much

    write_and_read(options.files, options.seed, options.keep)


if __name__ == "__main__":
    main()
