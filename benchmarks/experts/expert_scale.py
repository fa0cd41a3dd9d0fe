"""What experts and conversations take on the disk and in time, and what that comes to at ten thousand experts
and a million talks.

    python -m benchmarks.experts.expert_scale            # 200 experts, 20,000 conversations of 4 questions in
    an SQLite file: some minutes python -m benchmarks.experts.expert_scale --table

Each answer keeps what it rests on, as a real one does: the metadata of one is taken from a real turn on the
curated graph with a scripted model. Sizes grow with the number of answers, so a million conversations are the
sizes times their number; times are of this size, and of a tenth of it, so that one sees what grows. Results
go to benchmarks/results/expert_scale.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kgot_lab.cli.requirements import need_files

RESULTS = Path(__file__).parents[1] / "results" / "expert_scale.json"
QUESTIONS, TIMES = 4, 50
AIM = {"experts": 10_000, "conversations": 1_000_000}
QUESTION = "How do I reduce what the model costs, and what does that break?"


def real_metadata() -> dict[str, Any]:
    """What an answer of the shipped expert keeps."""
    from kgot_lab.experts.graph_folder import GraphFolder
    from kgot_lab.experts.repository import open_experts
    from kgot_lab.experts.service import SHIPPED_GRAPHS, ExpertModels, ExpertService, ship_experts
    from kgot_lab.llm.recorded import Scripted

    model = Scripted(lambda prompt: "Cache repeated work [Source: cookbook:Cache repeated work]. " * 5)
    service = ExpertService(
        open_experts(), GraphFolder(more=SHIPPED_GRAPHS), ExpertModels({"model": lambda: model}, "model")
    )
    ship_experts(service)
    turn = service.ask("expert_cookbook", "me", QUESTION)
    for _ in turn.events():
        pass
    return dict(service.conversation(turn.conversation, "expert_cookbook", "me")[1][1].metadata)


def measured(experts: int, conversations: int, metadata: dict[str, Any]) -> dict[str, Any]:
    """The bytes and the milliseconds of a file with so many experts and conversations."""
    from kgot_lab.experts.expert import expert_config
    from kgot_lab.experts.repository import open_experts
    from kgot_lab.experts.service import shipped_configs

    (config,) = (each for id, each in shipped_configs() if id == "expert_cookbook")
    answer = "Cache repeated work [Source: cookbook:Cache repeated work]. " * 5
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="kgot_scale_") as folder:
        path = Path(folder) / "experts.db"
        tables = open_experts(path)
        with tables.storage.changing():
            ids = [tables.add_expert(expert_config(config)).id for _ in range(experts)]
        with_experts = size(folder)
        began = time.perf_counter()
        last = ""
        for first in range(0, conversations, 500):
            with tables.storage.changing():  # in one change, since only the size matters here
                for number in range(first, min(first + 500, conversations)):
                    expert, owner = ids[number % experts], f"tenant{number % 50}"
                    last = tables.begin(expert, owner, QUESTION)
                    for _ in range(QUESTIONS):
                        tables.say(last, "user", QUESTION)
                        tables.say(last, "assistant", answer, metadata)
        filled = time.perf_counter() - began
        expert, owner = ids[(conversations - 1) % experts], f"tenant{(conversations - 1) % 50}"
        asked: dict[str, Callable[[], object]] = {
            "an expert by its id": lambda: tables.expert(expert),
            "all experts": tables.experts,
            "a page of 50 experts": lambda: tables.experts_after(ids[experts // 2], 50),
            "20 conversations of one": lambda: tables.conversations(expert, owner),
            "a conversation with its messages": lambda: (
                tables.conversation(last, expert, owner),
                tables.messages(last),
            ),
            "what was said before": lambda: tables.earlier_messages(expert, owner, last, 2_000),
            "keep a message, on the disk": lambda: tables.say(last, "user", QUESTION),
        }
        took = {name: [milliseconds(ask) for _ in range(TIMES)] for name, ask in asked.items()}
        whole = size(folder)
        tables.close()
    return {
        "experts": experts,
        "conversations": conversations,
        "bytes an expert": round((with_experts) / experts),
        "bytes a conversation": round((whole - with_experts) / conversations),
        "fill_seconds": round(filled, 1),
        "milliseconds": {name: round(statistics.median(each), 3) for name, each in took.items()},
    }


def size(folder: str) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in Path(folder).iterdir())


def milliseconds(act: Callable[[], object]) -> float:
    """How long an act takes."""
    began = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - began)


def show(report: dict[str, Any]) -> None:
    """Print what was measured, and what it comes to."""
    small, large = report["runs"]
    print(
        f"{QUESTIONS} questions a conversation, {report['metadata']:,} bytes of what an answer rests on; SQLite, load {report['busy']}"
    )
    print(f"{'milliseconds, median':36}{small['conversations']:>10,}{large['conversations']:>10,}")
    for name, value in large["milliseconds"].items():
        print(f"{name:36}{small['milliseconds'][name]:>10.2f}{value:>10.2f}")
    experts, talks = (
        AIM[name] * large[f"bytes a{'n expert' if name == 'experts' else ' conversation'}"] for name in AIM
    )
    print(
        f"an expert takes {large['bytes an expert']:,} bytes, a conversation {large['bytes a conversation']:,}"
    )
    print(
        f"{AIM['experts']:,} experts and {AIM['conversations']:,} conversations: {(experts + talks) / 1e9:.1f} GB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--experts", type=int, default=200)
    parser.add_argument("--conversations", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--table", action="store_true", help="show what was measured")
    options = parser.parse_args()
    if options.experts < 1 or options.conversations < 10:
        parser.error("--experts are 1 or more, --conversations 10 or more")
    if options.table:
        need_files("python -m benchmarks.experts.expert_scale makes it", options.out)
        show(json.loads(options.out.read_text()))
        return
    metadata = real_metadata()
    sizes = (
        (max(1, options.experts // 10), options.conversations // 10),
        (options.experts, options.conversations),
    )
    report = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "metadata": len(json.dumps(metadata)),
        "runs": [measured(*size, metadata) for size in sizes],
        "busy": round(os.getloadavg()[0], 1),
    }
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    show(report)


if __name__ == "__main__":
    main()
