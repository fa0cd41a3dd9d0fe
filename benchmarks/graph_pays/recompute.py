"""Compute the tables of a comparison again, from its answers alone, with nothing of the package: numpy and Python.

python benchmarks/graph_pays/recompute.py benchmarks/results/graph_pays
python benchmarks/graph_pays/recompute.py FOLDER OTHER  # the systems of a folder minus the same ones of another

Exact match and F1 are computed from the answers, then the means, the differences of each planned pair, their BCa
intervals, the randomisation p-values and Holm's correction. Prints them, and ends with an error if a figure differs
from the folder's results.json at the last digit that is shown. An answer that was scored against an alias is counted
and taken as recorded.
"""

import json
import re
import string
import sys
from collections import Counter
from pathlib import Path
from statistics import NormalDist

import numpy as np

ALL = "all sets"
NORMAL = NormalDist()
CHOSEN = "without those on which weights were chosen"
# 25 of the open questions of HotpotQA were in the dev split on which the weights of `follow` were chosen
_SPLIT = Path(__file__).parents[2] / "data" / "hotpotqa-train-100" / "split.json"
CHOSEN_ON = frozenset(json.loads(_SPLIT.read_text("utf-8"))["test"])


def normalise(answer):
    """Lower case, without punctuation and articles."""
    text = "".join(letter for letter in answer.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def token_f1(answer, gold):
    """Compute F1 over words; yes, no and noanswer count only if they match."""
    one, two = normalise(answer), normalise(gold)
    if one != two and {one, two} & {"yes", "no", "noanswer"}:
        return 0.0
    shared = (Counter(one.split()) & Counter(two.split())).total()
    return 2 * shared / (len(one.split()) + len(two.split())) if shared else 0.0


def load_answers(folder, plan):
    """Load F1 and exact match by system and (set, id), the group of each question, and how many took an alias."""
    scores, groups, aliases = {}, {}, 0
    for set in plan["sets"]:
        for system in plan["systems"]:
            path = folder / set / system / "results.jsonl"
            for line in path.read_text("utf-8").splitlines() if path.exists() else ():
                row = json.loads(line)
                f1, em = (
                    token_f1(row["predicted"], row["gold"]),
                    float(normalise(row["predicted"]) == normalise(row["gold"])),
                )
                if row["error"]:
                    f1 = em = 0.0
                aliases += f1 < row["f1"] - 1e-9
                scores.setdefault(system, {})[set, row["id"]] = max(f1, row["f1"]), max(em, row["em"])
                groups[set, row["id"]] = f"{set} {row['group'] or row['id']}"
    return scores, groups, aliases


def group_sums(values, groups):
    """Return the sum and the count of each group, in order of first occurrence."""
    order = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    sums, sizes = np.zeros(len(order)), np.zeros(len(order))
    for value, group in zip(values, groups, strict=True):
        sums[order[group]] += value
        sizes[order[group]] += 1
    return sums, sizes


def interval(values, groups, rounds, seed):
    """Return the mean and its 95 % BCa interval, by a bootstrap of groups."""
    sums, sizes = group_sums(values, groups)
    mean, count = sums.sum() / sizes.sum(), len(sums)
    if count == 1:
        return mean, mean, mean
    drawn = np.random.default_rng(seed).integers(0, count, (rounds, count))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    without = (sums.sum() - sums) / (sizes.sum() - sizes)
    off = without - without.mean()
    if np.abs(off).max() < 1e-9 / sizes.sum():
        return mean, mean, mean
    below = ((means < mean - 1e-9).sum() + (means <= mean + 1e-9).sum()) / (2 * rounds)
    bias = NORMAL.inv_cdf(min(max(below, 0.5 / rounds), 1 - 0.5 / rounds))
    skew = -(off**3).sum() / (6 * (off**2).sum() ** 1.5)
    ends = []
    for tail in (0.025, 0.975):
        z = bias + NORMAL.inv_cdf(tail)
        ends.append(NORMAL.cdf(bias + z / (1 - skew * z)))
    return mean, *np.quantile(means, ends)


def p_value(values, groups, rounds, seed):
    """Return the p-value of flipping the signs of groups at random; of all flips if they are few."""
    moved = group_sums(values, groups)[0]
    moved = moved[moved != 0]
    if not len(moved):
        return 1.0
    observed = abs(moved.sum()) - 1e-9
    if 2 ** len(moved) <= rounds:
        flips = 1 - 2 * ((np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1)
        return float((np.abs(flips @ moved) >= observed).mean())
    flips = 1.0 - 2.0 * np.random.default_rng(seed).integers(0, 2, (rounds, len(moved)), np.int8)
    return float((1 + (np.abs(flips @ moved) >= observed).sum()) / (1 + rounds))


def holm(values):
    """Correct p-values by Holm's method."""
    found, least = {}, 0.0
    for place, index in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, values[index] * (len(values) - place)))
        found[index] = least
    return [found[index] for index in range(len(values))]


def recompute(folder):
    """Return the figures of a folder by name: of each system and set, and of each pair."""
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    scores, groups, aliases = load_answers(folder, plan)
    rounds, seed = plan["chance"]["rounds"], plan["chance"]["seed"]
    aimed = {(aim["system"], aim["other"], aim["on"]) for aim in plan["aims"] if aim["kind"] == "gain"}
    sets = [*plan["sets"], *([ALL] if len(plan["sets"]) > 1 else [])]
    figures, pairs = {}, []
    for system, answers in scores.items():
        for set in sets:
            keys = [key for key in answers if set in (key[0], ALL)]
            for number, name in enumerate(("f1", "em")):
                values = [answers[key][number] for key in keys]
                if keys:
                    figures[system, set, name] = interval(values, [groups[key] for key in keys], rounds, seed)
    for system, other in plan["pairs"]:
        for set in sets:
            ours, theirs = scores.get(system, {}), scores.get(other, {})
            keys = [key for key in ours if key in theirs and set in (key[0], ALL)]
            own = [groups[key] for key in keys]
            if len(dict.fromkeys(own)) > 1:
                gaps = [ours[key][0] - theirs[key][0] for key in keys]
                pairs.append(
                    (
                        (system, other, set),
                        interval(gaps, own, rounds, seed),
                        p_value(gaps, own, rounds, seed),
                    )
                )
    for is_aimed in (True, False):
        family = [pair for pair in pairs if (pair[0] in aimed) is is_aimed]
        for (name, span, p), corrected in zip(family, holm([p for *_, p in family]), strict=True):
            figures[name] = (*span, p, corrected)
    return figures, aliases


def differences(figures, folder):
    """Yield what differs from results.json at three decimals."""
    kept = json.loads((folder / "results.json").read_text("utf-8"))
    recorded = {}
    for row in kept["measured"]:
        for name in ("f1", "em"):
            recorded[row["system"], row["on"], name] = tuple(
                row[name][end] for end in ("mean", "low", "high")
            )
    for row in kept["pairs"]:
        span = tuple(row["difference"][end] for end in ("mean", "low", "high"))
        recorded[row["system"], row["other"], row["on"]] = (*span, row["p"], row["p_holm"])
    for name, values in recorded.items():
        ours = figures.get(name)
        if ours is None or any(f"{a:.3f}" != f"{b:.3f}" for a, b in zip(values, ours, strict=False)):
            yield f"{name}: recorded {values}, computed {ours}"


def weighted_gap(gaps, groups, weights, rounds, seed):
    """Return the mean of weighted sets and its 95 % percentile interval; groups are drawn within their set."""
    rng, total, drawn_total = np.random.default_rng(seed), 0.0, np.zeros(rounds)
    for set, weight in weights.items():
        sums, sizes = group_sums(gaps[set], groups[set])
        drawn = rng.integers(0, len(sums), (rounds, len(sums)))
        total += weight * sums.sum() / sizes.sum()
        drawn_total += weight * sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    return total, *np.quantile(drawn_total, (0.025, 0.975))


def print_parts(folder):
    """Print each planned gap in the mixture of sets that was planned, and on parts of the questions."""
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    scores, group_of, _ = load_answers(folder, plan)
    rounds, seed = plan["chance"]["rounds"], plan["chance"]["seed"]
    planned = {set: told["questions"] for set, told in plan["sets"].items()}
    weights = {set: count / sum(planned.values()) for set, count in planned.items()}
    parts = {
        "unseen": lambda key: key[0].endswith("-unseen"),
        "MuSiQue, both parts": lambda key: key[0].startswith("musique"),
        CHOSEN: lambda key: key[1] not in CHOSEN_ON,
    }
    for system, other in plan["pairs"] if any(set.endswith("-unseen") for set in planned) else ():
        shared = [key for key in scores.get(system, {}) if key in scores.get(other, {})]
        if len({set for set, _ in shared}) < len(planned):
            continue
        for number, measure in enumerate(("f1", "em")):
            gap = {key: scores[system][key][number] - scores[other][key][number] for key in shared}
            for kept, note in ((shared, ""), (list(filter(parts[CHOSEN], shared)), f", {CHOSEN}")):
                by_set = {set: [key for key in kept if key[0] == set] for set in planned}
                gaps = {set: [gap[key] for key in keys] for set, keys in by_set.items()}
                groups = {set: [group_of[key] for key in keys] for set, keys in by_set.items()}
                span = weighted_gap(gaps, groups, weights, rounds, seed)
                print_span(f"{system} minus {other}, {measure}, planned mixture of sets{note}", span)
            for name, holds in parts.items():
                keys = list(filter(holds, shared))
                of = [gap[key] for key in keys], [group_of[key] for key in keys], rounds, seed
                span = *interval(*of), p_value(*of)
                print_span(f"{system} minus {other}, {measure}, {name}, {len(keys)}", span)


def print_span(name, values):
    """Print a difference, its interval and its p-value."""
    print(f"{name}:", " ".join(f"{value:+.3f}" for value in values))


def print_between(folder, other):
    """Print F1 of each system of a folder minus the same system's of another, on the questions of both."""
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    rounds, seed = plan["chance"]["rounds"], plan["chance"]["seed"]
    ours, groups, _ = load_answers(folder, plan)
    theirs, *_ = load_answers(other, plan)
    for system in (system for system in ours if system in theirs):
        keys = [key for key in ours[system] if key in theirs[system]]
        gaps, own = (
            [ours[system][key][0] - theirs[system][key][0] for key in keys],
            [groups[key] for key in keys],
        )
        span = *interval(gaps, own, rounds, seed), p_value(gaps, own, rounds, seed)
        print_span(f"{system}, {len(keys)} questions", span)


def main():
    """Print the figures, and end with an error if one differs."""
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        return print_between(folder, Path(sys.argv[2]))
    print_parts(folder)
    figures, aliases = recompute(folder)
    for name, values in figures.items():
        print(", ".join(name), " ".join(f"{value:.3f}" for value in values))
    print(f"{len(figures)} figures; {aliases} answers scored against an alias, taken as recorded")
    if (folder / "results.json").exists():
        wrong = list(differences(figures, folder))
        print(*wrong, sep="\n") if wrong else print("all agree with results.json at three decimals")
        sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
