"""Files that hold no code: settings in JSON, YAML and TOML, and prose in Markdown."""
