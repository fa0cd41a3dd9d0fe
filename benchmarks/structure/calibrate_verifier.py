"""Choose the limits of the verifier again, on the develop questions of four sets: a right choice is an
analogy, a wrong one is none.

Prints what `kgot_lab.analogy.verdict.calibrated_verdict` chooses, and for each set what those limits keep and
veto; the defaults in `Cutoffs` are from here. The figures are on the pairs they were chosen on.
"""

import argparse

from benchmarks.structure.limits_of_verdicts import labelled_alignments, shares_kept
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.verdict import Cutoffs, calibrated_verdict
from kgot_lab.cli.requirements import need_structure
from kgot_lab.embedding.vectors import minilm


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    need_structure()
    known = list(labelled_alignments(Aligner(minilm())))
    chosen = calibrated_verdict([one.alignment for one in known], [one.analogous for one in known])
    print(chosen, f"{chosen.limits}", f"the defaults: {Cutoffs()}", sep="\n")
    for name, (kept, gone) in shares_kept(known, Cutoffs()).items():
        print(
            f"{name:24} with the defaults {kept:.1%} of the analogies kept, {gone:.1%} of the others vetoed"
        )


if __name__ == "__main__":
    main()
