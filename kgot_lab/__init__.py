"""A Jupyter workbench that shows how a language model grows and queries a knowledge graph, and measures
whether it helps.

This is the public API: `import kgot_lab as lab`, then `lab.ask`, `lab.show`, `lab.open_store` and the other
names of `__all__`, each loaded when it is first used. Everything else is in its subpackage.
"""

from os import environ as _environ

__version__ = "0.1.0"
# onnxruntime >= 1.29 sends telemetry; markitdown imports it too, in processes of its own
_environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def _public_names() -> dict[str, tuple[str, str]]:
    """Return the module of each public name and what it is called there, from the stub file."""
    stub = __loader__.get_data(f"{__path__[0]}/__init__.pyi").decode()
    imports = (line.split() for line in stub.splitlines() if line.startswith("    from "))
    return {names[-1]: (module, names[0]) for _, module, _, *names in imports}


_PUBLIC = _public_names()
__all__ = [*_PUBLIC]


def __getattr__(name: str) -> object:
    """Load a name of the public API when it is first used.

    Raises AttributeError for an unknown name, with suggestions.
    """
    if name not in _PUBLIC:
        raise AttributeError(_suggestion_message(name))
    from importlib import import_module

    module, original = _PUBLIC[name]
    found: object = getattr(import_module(module), original, None) or import_module(f"{module}.{original}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})


def _suggestion_message(name: str) -> str:
    from difflib import get_close_matches

    suggestions = get_close_matches(name, _PUBLIC, n=3)
    advice = f"did you mean {' or '.join(suggestions)}?" if suggestions else f"it offers {', '.join(_PUBLIC)}"
    return f"kgot_lab has no {name!r}; {advice} Other names are in subpackages, such as kgot_lab.retrieval.lexical"
