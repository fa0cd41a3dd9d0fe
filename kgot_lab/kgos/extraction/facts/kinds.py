"""Which files are read, by how their names end."""

PYTHON_ENDINGS = (".py", ".pyi")
# in the order in which an import without an ending looks
SCRIPT_ENDINGS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
SETTINGS_ENDINGS = (".json", ".toml", ".yaml", ".yml")
PROSE_ENDINGS = (".md", ".markdown")
READ_ENDINGS = (*PYTHON_ENDINGS, *SCRIPT_ENDINGS, *SETTINGS_ENDINGS, *PROSE_ENDINGS)
