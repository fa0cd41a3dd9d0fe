"""Starts the Java that ArcadeDB's package brings, in this process.

Runs inside the sandbox: imports the standard library and JPype only.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

# a quick start and little memory besides the heap; no file is written but the database, nor the log that the
# engine would keep in whatever folder it was started from
_OPTIONS = (
    "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto", "-Xrs", "-XX:ErrorFile=/dev/null",
    "-XX:-CreateCoredumpOnCrash", "-XX:+DisplayVMOutputToStderr", "-Djava.awt.headless=true", "-Dfile.encoding=UTF8",
    f"-Djava.util.logging.config.file={os.devnull}", "-Dpolyglot.engine.WarnInterpreterOnly=false", "--enable-native-access=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED", "--add-opens=java.base/java.nio.channels.spi=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)  # fmt: skip
# small pages without a search for gaps load fast, and nothing outlives the worker; no statement reads a file
# or an address
_SETTINGS = {
    "txWAL": "false", "bucketReuseSpaceMode": "low", "bucketDefaultPageSize": "16384",
    "opencypher.loadCsv.allowFileUrls": "false", "opencypher.loadCsv.allowRemoteUrls": "false",
}  # fmt: skip


def start(memory_mb: int) -> None:
    """Start the Java that the package brings, with a heap of this size; a process can do so once."""
    import jpype

    found = importlib.util.find_spec("arcadedb_embedded")
    if found is None or found.origin is None:
        raise ImportError("arcadedb_embedded")
    home = Path(found.origin).parent
    settings = [f"-Darcadedb.{name}={value}" for name, value in _SETTINGS.items()]
    jars = sorted(map(str, (home / "jars").glob("*.jar")))
    library = str(home / "jre/lib/server/libjvm.so")
    jpype.startJVM(library, f"-Xmx{memory_mb}m", *_OPTIONS, *settings, classpath=jars, convertStrings=False)
    system = jpype.JClass("java.lang.System")
    system.setOut(system.err)  # standard output belongs to the replies
