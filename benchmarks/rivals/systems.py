"""The systems that are compared: what is installed, and which adapter runs them.

    python -m benchmarks.rivals.systems lightrag    # makes an environment of its own and installs it there
    python -m benchmarks.rivals.systems             # lists them

The environments are in runs/rivals/env. They are no dependencies of kgot_lab.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
WORK = Path("runs/rivals")


@dataclass(frozen=True)
class System:
    """A system: its name in tables, its adapter, and what is installed for it (nothing: the project's Python)."""

    title: str
    adapter: str
    packages: tuple[str, ...] = ()


SYSTEMS = {
    "paths": System("kgot_lab, paths", "use_paths"),
    "rag-unknown": System("kgot_lab, plain RAG with unknown", "use_rag"),
    # litellm has the files of the tokenizer that LightRAG would download; openai is what it asks models with
    "lightrag": System("LightRAG 1.5.7", "use_lightrag", ("lightrag-hku==1.5.7", "openai", "litellm")),
    "nano-graphrag": System("nano-graphrag 0.0.8.2", "use_nano_graphrag", ("nano-graphrag==0.0.8.2",)),
    # a newer sentencepiece asks for a newer protobuf than its other dependencies allow, and import fails
    "fast-graphrag": System(
        "fast-graphrag 0.0.5", "use_fast_graphrag", ("fast-graphrag==0.0.5", "sentencepiece<0.2.1")
    ),
    "graphrag": System("GraphRAG (Microsoft) 3.3.0", "use_graphrag", ("graphrag==3.3.0",)),
    "linear-rag": System("LinearRAG, after its paper", "use_name_graph"),
    "sprig": System("SPRIG, after its paper", "use_name_graph"),
}


def environment(name: str) -> Path:
    """Return the folder of a system's environment."""
    return WORK / "env" / name


def command(name: str) -> list[str]:
    """Return the command that serves a system."""
    system = SYSTEMS[name]
    if not system.packages:
        return [sys.executable, "-m", f"benchmarks.rivals.adapters.{system.adapter}"]
    return [str(environment(name).absolute() / "bin/python"), str(HERE / "adapters" / f"{system.adapter}.py")]


def tokenizers(name: str) -> Path | None:
    """Return the tokenizer files in a system's environment, for a computer where tiktoken can fetch none."""
    inside = "lib/python*/site-packages/litellm/litellm_core_utils/tokenizers"
    return next(iter(environment(name).absolute().glob(inside)), None)


def adapter_lines(name: str) -> int:
    """Count the lines of code of a system's adapter, without blank ones, comments and the docstring on top."""
    text = (HERE / "adapters" / f"{SYSTEMS[name].adapter}.py").read_text("utf-8")
    lines = [line.strip() for line in text.splitlines()]
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in lines)


def install(name: str) -> None:
    """Make a system's environment and install its packages there."""
    folder = environment(name)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin/pip"), "install", *SYSTEMS[name].packages], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        for name, system in SYSTEMS.items():
            print(f"{name:15} {system.title:35} {' '.join(system.packages) or 'nothing to install'}")
    for name in sys.argv[1:]:
        install(name)
