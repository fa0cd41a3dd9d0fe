"""Which files are read, by how their names end."""

PYTHON = (".py", ".pyi")
SCRIPTS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")  # in the order in which an import without an ending looks
SETTINGS = (".json", ".toml", ".yaml", ".yml")
PROSE = (".md", ".markdown")
READ = (*PYTHON, *SCRIPTS, *SETTINGS, *PROSE)
