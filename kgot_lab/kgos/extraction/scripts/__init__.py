"""JavaScript and TypeScript, by the grammars of tree-sitter."""
