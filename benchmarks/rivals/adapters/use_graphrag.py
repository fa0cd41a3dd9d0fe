"""Microsoft's graphrag, by its command line: `graphrag init`, settings.yaml, `graphrag index`, local search."""

import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from graphrag.cli.query import run_local_search
from protocol import serve


class System:
    def __init__(self, settings):
        self.settings, self.root = settings, Path(settings["folder"])

    def index(self, paths):
        self.run(
            "init", "--force", "--model", self.settings["model"], "--embedding", self.settings["embedder"]
        )
        for path in paths:
            shutil.copy(path, self.root / "input" / f"{Path(path).stem}.txt")
        self.configure()
        self.run("index")
        import pandas

        sizes = {name: len(pandas.read_parquet(self.root / "output" / f"{name}.parquet")) for name in
                 ("entities", "relationships", "community_reports")}  # fmt: skip
        return {
            "entities": sizes["entities"],
            "relations": sizes["relationships"],
            "reports": sizes["community_reports"],
        }

    def configure(self):
        file, given = self.root / "settings.yaml", self.settings
        config = yaml.safe_load(file.read_text())
        for kind in ("completion_models", "embedding_models"):
            for model in config[kind].values():
                model |= {"api_base": given["url"], "api_key": given["key"]}
                model["call_args"] = {"timeout": given["seconds"]}
        config["concurrent_requests"] = 1
        config["vector_store"]["vector_size"] = given["dimension"]
        config["local_search"]["max_context_tokens"] = given["budget"]
        file.write_text(yaml.safe_dump(config))

    def run(self, command, *options):
        subprocess.run(
            [sys.executable, "-m", "graphrag", command, "--root", str(self.root), *options], check=True
        )

    def ask(self, question):
        self.configure()  # the address and the key are new at each start
        answer, _ = run_local_search(
            data_dir=None,
            root_dir=self.root,
            community_level=2,
            response_type="Multiple Paragraphs",
            streaming=False,
            query=question,
            verbose=False,
        )
        return answer


serve(System)
