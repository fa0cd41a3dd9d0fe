"""What becomes of beliefs when their reasons go: claims beside two truth maintenance packages, case by case.

    pip install ftl-reasons==0.57.0 veritas-tms==0.17.0      # in an environment of their own, where this
    package is too python -m benchmarks.memory.truth_maintenance                   # the table; a package that
    is not installed is left out

Each case is run on the claims in a file, on `reasons` (Network, Storage) and on `veritas` (BeliefStore with
its own detector), with inputs of a few facts. These are the rows of the table in docs/memory.md that ask for
no judgement; the others were tried by hand.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CANARY = "canary-71c0"
_Case = Callable[[Path], str]


def of_claims() -> Mapping[str, _Case]:
    """The cases on claims of this package."""
    from kgot_lab.memory.claims import Claim, Claims, SQLiteClaims
    from kgot_lab.types import Triple

    def fact(words: str) -> Triple:
        return Triple(*words.split())

    def told(place: Path, *claims: Claim) -> Claims:
        opened = Claims(SQLiteClaims(place / "claims.db"))
        opened.learn(claims)
        return opened

    one, two, made = fact("a is one"), fact("a is two"), fact("a is made")

    def derived(*premises: Triple, of: Triple = made, by: str = "rule") -> Claim:
        return Claim(of, by, kind="inferred", premises=premises)

    def justification(place: Path) -> str:
        claims = told(place, Claim(one, "s1"), Claim(two, "s2"), derived(one), derived(two))
        claims.retract_source("s1")
        return _stands(claims.holds(made))

    def source(place: Path) -> str:
        claims = told(place, Claim(one, "s1"), Claim(one, "s2"))
        claims.retract_source("s1")
        return _stands(claims.holds(one))

    def last(place: Path) -> str:
        claims = told(place, Claim(one, "s1"), derived(one))
        claims.retract_source("s1")
        return _stands(claims.holds(one) or claims.holds(made))

    def circle(place: Path) -> str:
        claims = told(place, Claim(one, "s1"), derived(one), derived(made, of=two), derived(two))
        claims.retract_source("s1")
        return _stands(claims.holds(made) or claims.holds(two))

    def back(place: Path) -> str:
        claims = told(place, Claim(one, "s1"), derived(one))
        claims.undo(claims.retract_source("s1").change)
        return "holds again" if claims.holds(made) else "does not"

    def twice(place: Path) -> str:
        claims = told(place, Claim(one, "s1"))
        return "nothing changes" if claims.learn(Claim(one, "s1")).change is None else "something changes"

    def text(place: Path) -> str:
        claims = told(place, Claim(fact(f"a is {CANARY}"), "s1"))
        claims.retract_source("s1")
        kept = _is_in(place)
        claims.erase_source("s1")
        return f"{kept}; after erase: {_is_in(place)}"

    def both(place: Path) -> str:
        mine, other = told(place), told(place)
        mine.learn(Claim(one, "s1"))
        other.learn(Claim(two, "s2"))
        return f"{len(told(place).facts())} of 2 kept"

    return dict(zip(CASES, (justification, source, last, circle, back, twice, text, both), strict=True))


def of_reasons() -> Mapping[str, _Case]:
    """The cases on ftl-reasons: a source is a premise, and what it says a node derived of it."""
    from reasons import Justification
    from reasons.network import Network
    from reasons.storage import Storage

    def network(derived: Mapping[str, list[list[str]]]) -> Any:
        made = Network()
        for id in ("s1", "s2"):
            made.add_node(id, id)
        for id, ways in derived.items():
            made.add_node(id, id, [Justification("SL", way) for way in ways])
        return made

    def holds(made: Any, id: str) -> bool:
        return bool(made.nodes[id].truth_value == "IN")

    def retracted(derived: Mapping[str, list[list[str]]], ask: str) -> str:
        made = network(derived)
        made.retract("s1")
        return _stands(holds(made, ask))

    def circle(_: Path) -> str:
        made = network({"made": [["s1"]], "two": [["made"]]})
        made.add_justification("made", Justification("SL", ["two"]))
        made.retract("s1")
        return _stands(holds(made, "made"))

    def back(_: Path) -> str:
        made = network({"made": [["s1"]]})
        made.retract("s1")
        made.assert_node("s1")
        return "holds again" if holds(made, "made") else "does not"

    def twice(_: Path) -> str:
        made = network({})
        try:
            made.add_node("s1", "s1")
        except ValueError:
            return "ValueError"
        return "nothing changes"

    def text(place: Path) -> str:
        made, storage = network({}), Storage(place / "reasons.db")
        made.add_node("c", CANARY)
        made.retract("c")
        storage.save(made)
        storage.close()
        return _is_in(place)

    def both(place: Path) -> str:
        Storage(place / "reasons.db").save(Network())
        opened = [Storage(place / "reasons.db") for _ in range(2)]
        loaded = [each.load() for each in opened]
        for number, (storage, made) in enumerate(zip(opened, loaded, strict=True)):
            made.add_node(f"n{number}", "x")
            storage.save(made)
        return f"{len(Storage(place / 'reasons.db').load().nodes)} of 2 kept"

    def once(derived: Mapping[str, list[list[str]]], ask: str) -> _Case:
        return lambda _: retracted(derived, ask)

    two_ways, one_way = once({"made": [["s1"], ["s2"]]}, "made"), once({"made": [["s1"]]}, "made")
    return dict(zip(CASES, (two_ways, two_ways, one_way, circle, back, twice, text, both), strict=True))


def of_veritas() -> Mapping[str, _Case]:
    """The cases on veritas-tms: what a source says is a belief marked `ground`."""
    from veritas import BeliefStore
    from veritas.persist import load, save

    def premises(store: Any) -> list[str]:
        return [
            store.assert_belief(f"premise {name}", source=name, ground=True).id for name in ("one", "two")
        ]

    def standing(store: Any, id: str) -> str:
        return _stands(store.get(id) is not None and store.get(id).is_active)

    def derived(ways: Callable[[list[str]], list[list[str]]]) -> _Case:
        def case(_: Path) -> str:
            store = BeliefStore()
            ids = premises(store)
            made = store.assert_belief("it is made", justifications=ways(ids))
            store.retract_belief(ids[0])
            return standing(store, made.id)

        return case

    def source(_: Path) -> str:
        store = BeliefStore()
        first, second = (
            store.assert_belief("the sky is blue", source=name, ground=True) for name in ("s1", "s2")
        )
        store.retract_belief(first.id)
        return standing(store, second.id)

    def circle(_: Path) -> str:
        store = BeliefStore()
        ids = premises(store)
        made = store.assert_belief("it is made", justifications=[[ids[0]]])
        store.assert_belief("it was made", justifications=[[made.id]])
        store.assert_belief("it is made", justifications=[[made.id]])
        store.retract_belief(ids[0])
        return _stands(
            any(belief.proposition in ("it is made", "it was made") for belief in store.active_beliefs())
        )

    def back(_: Path) -> str:
        store = BeliefStore()
        ids = premises(store)
        made = store.assert_belief("it is made", justifications=[[ids[0]]])
        store.retract_belief(ids[0])
        store.assert_belief("premise one", source="one", ground=True, reuse_retracted_id=True)
        return "holds again" if store.get(made.id).is_active else "does not"

    def twice(_: Path) -> str:
        store = BeliefStore()
        for _again in range(2):
            store.assert_belief("the sky is blue", source="s1", ground=True)
        return f"{len(store.active_beliefs())} beliefs"

    def text(place: Path) -> str:
        store = BeliefStore()
        store.retract_belief(store.assert_belief(f"it is {CANARY}", ground=True).id)
        save(store, str(place / "veritas.db"))
        return _is_in(place)

    def both(place: Path) -> str:
        path = str(place / "veritas.db")
        save(BeliefStore(), path)
        for number, store in enumerate([load(path), load(path)]):
            store.assert_belief(f"number {number} is here", ground=True)
            save(store, path)
        return f"{len(load(path).active_beliefs())} of 2 kept"

    two_ways, one_way = derived(lambda ids: [[ids[0]], [ids[1]]]), derived(lambda ids: [[ids[0]]])
    return dict(zip(CASES, (two_ways, source, one_way, circle, back, twice, text, both), strict=True))


CASES = (
    "one of two justifications goes", "one of two sources that say the same goes", "the last goes",
    "facts derived from each other, their reason gone", "the premise comes back", "the same told twice",
    "text in the file after a retraction", "two who load, add and save one file",
)  # fmt: skip
PEERS = {"ftl-reasons": ("reasons", of_reasons), "veritas-tms": ("veritas", of_veritas)}


def _stands(holds: bool) -> str:
    return "stays" if holds else "falls"


def _is_in(place: Path) -> str:
    there = any(CANARY.encode() in path.read_bytes() for path in place.iterdir() if path.is_file())
    return "there" if there else "gone"


def outcome(case: _Case) -> str:
    """What a case comes to, in a folder of its own; the name of the error where it ends in one."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return case(Path(folder))
        except Exception as error:
            return type(error).__name__


def main() -> None:
    """Run every case on what is installed, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    columns = {"claims": {name: outcome(case) for name, case in of_claims().items()}}
    for package, (module, cases) in PEERS.items():
        if find_spec(module) is None:
            print(f"{package} is not installed, and left out")
        else:
            version = importlib.metadata.version(package)
            columns[f"{package} {version}"] = {name: outcome(case) for name, case in cases().items()}
    print(
        "".join(
            f"{title:54}" if number == 0 else f"{title:30}" for number, title in enumerate(["case", *columns])
        ).rstrip()
    )
    for name in CASES:
        print(f"{name:54}" + "".join(f"{told[name]:30}" for told in columns.values()).rstrip())


if __name__ == "__main__":
    main()
