"""A shareable file of models: for each a name, the model, its price and its settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kgot_lab.errors import BadInput, LabError, UnknownName
from kgot_lab.io.files import read_regular_text
from kgot_lab.llm.presets import Price, RetryPolicy, Settings
from kgot_lab.llm.structured import field_problem

if TYPE_CHECKING:
    from yaml.nodes import MappingNode

_KEY_FIELD = re.compile(
    r"(api_?|access_?|auth_?|bearer_?|secret_?)?(key|token)|secret|password|auth\w*", re.I
)
_KEY_LIKE = re.compile(r"(sk-|AIza|gsk_|xai-|hf_|tvly-|Bearer )[\w-]{8,}")
_NO_KEY = "a key does not belong in a file that is shared; name the environment variable that holds it, as in key_variable: OPENAI_API_KEY"
# fields of models on servers only
_SERVER_FIELDS = {"price", "patience", "key_variable", "reasoning_effort"}


def _require_no_key(text: str) -> str:
    if _KEY_LIKE.search(text):
        raise ValueError(_NO_KEY)
    return text


def _require_variable_name(name: str) -> str:
    # looks like a key, not like the name of a variable
    if len(name) >= 32 and re.search("[a-z]", name) and re.search(r"\d", name):
        raise ValueError(_NO_KEY)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError("it is the name of an environment variable, such as OPENAI_API_KEY")
    return name


_Text = Annotated[str, AfterValidator(_require_no_key)]
_Variable = Annotated[str, AfterValidator(_require_no_key), AfterValidator(_require_variable_name)]


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = {"extra": "forbid", "frozen": True, "strict": True}


class _Price(_Part):
    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)


class _Patience(_Part):
    attempts: int | None = Field(None, ge=1)
    timeout: float | None = Field(None, gt=0)
    first_wait: float | None = Field(None, ge=0)
    longest_wait: float | None = Field(None, ge=0)
    longest_asked: float | None = Field(None, ge=0)
    empty: int | None = Field(None, ge=1)


class ModelEntry(_Part):
    """An entry of a models file. `model` is as in `connect`, the rest as in Settings, Price and RetryPolicy."""

    model: _Text
    price: _Price | None = None  # US dollars a million tokens
    temperature: float | None = Field(None, ge=0, le=2)
    temperature_scale: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1)
    reasoning_effort: _Text | None = None
    allowance: int | None = Field(None, ge=0)
    num_ctx: int | None = Field(None, ge=1)
    patience: _Patience | None = None
    key_variable: _Variable | None = None

    @property
    def kind(self) -> str:
        """The first word of the model: local, recorded, http, openai."""
        return self.model.partition(":")[0].lower()

    def options(self) -> dict[str, Any]:
        """Return the options for the class of the model.

        Raises BadInput for a field that does not apply to it.
        """
        values = self.model_dump(exclude_none=True, exclude={"model"})
        inapplicable = {"recorded": set(values), "local": _SERVER_FIELDS}.get(self.kind, set())
        for name in values:
            if name in inapplicable or (name == "num_ctx" and self.kind not in {"ollama", "local"}):
                raise BadInput(f"{name}: a model that begins with {self.kind!r} has no such field")
        options: dict[str, Any] = {}
        if price := values.pop("price", None):
            options["price"] = Price(**price)
        if patience := values.pop("patience", None):
            options["patience"] = RetryPolicy(**patience)
        if variable := values.pop("key_variable", None):
            options["key_variable"] = variable
        return options | ({"settings": Settings(**values)} if values else {})


@dataclass(frozen=True, repr=False)
class Models(Mapping[str, ModelEntry]):
    """The models in a file. `connect(name, models=…)` opens one."""

    entries: Mapping[str, ModelEntry]
    source: str = ""

    def __getitem__(self, name: str) -> ModelEntry:
        return self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        entries = ", ".join(f"{name} ({entry.model})" for name, entry in self.entries.items())
        return f"<{self.source}: {entries}>"


def load_models(path: str | Path) -> Models:
    """Load the models in a YAML file.

    Raises BadInput, which names file, entry and field, for an invalid one.
    """
    return models_from(read_yaml(path, "the models file"), str(path))


def read_yaml(path: str | Path, what: str) -> Any:
    """Read a YAML file without duplicate names. Raises BadInput, with the line, for any other; `what` is named in it."""
    import yaml

    class OnceOnly(yaml.SafeLoader):
        """A YAML loader that refuses duplicate names, of which YAML's own loader silently keeps the last."""

        def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
            names = [key.value for key, _ in node.value]
            for name in names:
                if names.count(name) > 1:
                    problem = f"{name} is there twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(read_regular_text(path), OnceOnly)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{what} {path} cannot be read: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1} of " if error.problem_mark else ""
        raise BadInput(f"{line}{path} is not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise BadInput(f"{path} is not YAML: {type(error).__name__}") from None
    except RecursionError:
        raise BadInput(f"{what} {path} is nested too deeply to be read") from None


def entry_for(models: Mapping[str, ModelEntry], name: str) -> str:
    """Return the name in `models` of the entry that a trace or recording refers to.

    The reference is an entry's own name or its name in traces. If several match, the first is returned. An
    entry whose file is gone has no name in traces. Raises UnknownName if none matches.
    """
    from kgot_lab.llm import model_name_in_traces

    if name in models:
        return name
    found: dict[str, str] = {}
    for own, entry in models.items():
        with suppress(LabError):
            found.setdefault(model_name_in_traces(entry.model, entry.options().get("settings")), own)
    if name not in found:
        raise UnknownName("model of a trace or recording", name, [*models, *found])
    return found[name]


def models_from(data: object, source: str) -> Models:
    """Parse the models in the data of a YAML file, a mapping from names to entries.

    Raises BadInput, which names `source`, entry and field, for an invalid one.
    """
    if not isinstance(data, Mapping) or not data:
        problem = f"{source} names no models: write a name for each, and below it model"
        raise BadInput(f"{problem}: openai:MODEL, price and so on")
    entries = {_name(name, source): _entry(entry, f"{source}: {name}") for name, entry in data.items()}
    return Models(entries, source)


def _name(name: object, source: str) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
        allowed = "letters, digits, dots, dashes and underscores"
        raise BadInput(f"{source}: a model's name is {allowed}, not {name!r:.60}")
    return name


def _entry(fields: object, location: str) -> ModelEntry:
    """Validate one entry. Messages never show a value, which might be a key."""
    from kgot_lab.llm import check_spec

    if not isinstance(fields, Mapping):
        raise BadInput(f"{location}: write what it is below its name, as in model: openai:MODEL")
    for field in fields:
        if field not in ModelEntry.model_fields and _KEY_FIELD.fullmatch(str(field)):
            raise BadInput(f"{location}.{field}: {_NO_KEY}")
    try:
        entry = ModelEntry.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"{location}.{': '.join(field_problem(error, ModelEntry.model_fields))}") from None
    try:
        check_spec(entry.model)
        entry.options()
    except LabError as error:
        raise BadInput(f"{location}: {error}") from None
    return entry
