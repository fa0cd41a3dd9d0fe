"""Work the events of the recorded runs out again from recorded replies and tool results, after the loop has
changed, without a model.

The replies stay those of the model that gave them. A run whose prompts have changed cannot be worked out so:
record it again.
"""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from datetime import date
from pathlib import Path

from kgot_lab.loop.replay.recording import Recording
from kgot_lab.loop.replay.replay import replay_events, replay_store, start_event
from kgot_lab.loop.trace import load_run, record
from kgot_lab.stores import open_for

TRACES = Path(__file__).parent.parent / "traces"


def work_out(path: Path) -> int:
    """Write a trace again, and return how many of its events changed; the store is a real one. Raises
    ReplayMiss.
    """
    run = load_run(path)
    begun, recording, fresh = (
        start_event(run.events),
        Recording.from_events(run.events),
        path.with_suffix(".new"),
    )
    fresh.unlink(missing_ok=True)
    with closing(open_for(begun.dialect, *begun.readers)) as store:
        walk = replay_events(run.events, recording, replay_store(recording, run.events, store))
        now = list(record(walk, fresh, run=run.run, metadata={**run.about, "worked_out": str(date.today())}))
    head, *lines = fresh.read_text(encoding="utf-8").splitlines(keepends=True)
    # when it was recorded
    head = json.dumps(json.loads(head) | {"created": run.created}, ensure_ascii=False, separators=(",", ":"))
    fresh.write_text("".join([f"{head}\n", *lines]), encoding="utf-8")
    changed = sum(was != event for was, event in zip(run.events, now, strict=False)) + abs(
        len(now) - len(run.events)
    )
    if changed:
        fresh.replace(path)
    fresh.unlink(missing_ok=True)
    return changed


def main() -> None:
    """Work out every bundled trace again, and say how many of its events changed."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for path in sorted(TRACES.glob("*.jsonl")):
        print(f"{path.name}: {work_out(path)} events changed", flush=True)


if __name__ == "__main__":
    main()
