"""What simple cases must come to, by formula: the simulation is held against these."""

from __future__ import annotations

from math import comb

from kgot_lab.errors import BadInput


def at_least(successes: int, trials: int, p: float) -> float:
    """The chance of so many successes or more: sum over i of C(n, i) p^i (1 - p)^(n - i); raises BadInput for
    a p outside 0 to 1.
    """
    if not 0 <= p <= 1:
        raise BadInput(f"a chance is between 0 and 1, not {p!r}")
    return sum(
        comb(trials, count) * p**count * (1 - p) ** (trials - count)
        for count in range(max(0, successes), trials + 1)
    )


def majority_errs(votes: int, vote: float) -> float:
    """The chance that more than half of the votes are wrong; where they may tie, only one side wins a tie,
    so let their number be odd.
    """
    return at_least(votes // 2 + 1, votes, vote)


def solved_despite_votes(hops: int, votes: int, vote: float) -> float:
    """Questions solved when only votes err and each turn finds one step: none of the votes between steps
    may end it too early.

    Before the first step the graph is empty and a RETRIEVE counts as INSERT; after the last one an INSERT
    costs a turn and nothing else.
    """
    return float((1 - majority_errs(votes, vote)) ** (hops - 1))


def solved_despite_misses(hops: int, steps: int, missed: float) -> float:
    """Questions solved when only writing misses facts, and each turn reads one: so many turns must find as
    many steps as there are hops.
    """
    return at_least(hops, steps, 1 - missed)


def solved_despite_inventions(hops: int, invented: float) -> float:
    """Questions solved when only writing makes things up, and nothing checks it: each fact must be the true
    one.
    """
    return float((1 - invented) ** hops)


def solved_despite_reads(votes: int, read: float) -> float:
    """Questions solved when only reading errs: one of the votes for reading must read the right
    facts.

    Voting stops at the majority, so there are votes // 2 + 1 of them.
    """
    return float(1 - read ** (votes // 2 + 1))


def solved_despite_forced_reads(reads: int, read: float) -> float:
    """The same where reading is forced, so many times: one of the forced reads must read the right facts."""
    return float(1 - read**reads)


def solved_despite_misreadings(readings: int, read: float, assured: float = 0.0) -> float:
    """Questions of one hop solved in the mode `paths` when only reading errs, and so many texts that hold the
    fact may be read in turn.

    The first answer that looks sure ends it, right or wrong: sum over i < readings of (read (1 - assured))^i
    (1 - read).
    """
    return float(sum((read * (1 - assured)) ** before for before in range(readings)) * (1 - read))


def solved_despite_hop_misreadings(hops: int, read: float, assured: float = 0.0) -> float:
    """Questions of two hops or more solved in the mode `paths` when only reading errs, and one text a hop is
    read.

    First the question itself is asked of a text that does not answer it: a misreading of that which looks
    sure ends the run. Then each hop must be read rightly.
    """
    return float((1 - read * assured) * (1 - read) ** hops)


def solved_despite_splits(split: float) -> float:
    """Questions of two hops or more solved in the mode `paths` when only splitting errs, and they are read
    hop by hop alone.
    """
    return 1 - split
