"""How long `import kgot_lab` takes: the median of nine fresh interpreters, less that of a bare one. The
target is 0.05 s.
"""

import argparse
import statistics
import subprocess
import sys
import time

ROUNDS = 9


def median_seconds(code: str) -> float:
    """The median wall time of a fresh interpreter that runs some code."""
    return statistics.median(_seconds(code) for _ in range(ROUNDS))


def _seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    bare, whole = median_seconds("pass"), median_seconds("import kgot_lab")
    print(f"import kgot_lab: {whole - bare:.3f} s (bare interpreter {bare:.3f} s, median of {ROUNDS})")
