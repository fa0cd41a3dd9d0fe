"""The YAML configuration of a run: models, limits, store, tools, budget. Command-line flags override it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kgot_lab.errors import BadInput, mask_secrets
from kgot_lab.llm.models import read_yaml
from kgot_lab.llm.structured import field_problem
from kgot_lab.loop.call_pool import PARALLEL
from kgot_lab.loop.limits import Limits


class _StrictModel(BaseModel):
    model_config: ClassVar[ConfigDict] = {"extra": "forbid", "frozen": True}


class StoreChoice(_StrictModel):
    """The store of a run, as `empty_store` takes it. `graph` is a snapshot or another file to begin with."""

    kind: str | None = None
    at: str | None = None
    namespace: str | None = None
    keep: bool = False
    wipe: bool = False
    unsafe: bool = False
    graph: str | None = None
    save: str | None = None  # output file for the final graph


class ToolChoice(_StrictModel):
    """The tools of a run: all that work here, those of the preset ("auto"), or tools by name."""

    names: Literal["auto", "all"] | tuple[str, ...] = "auto"
    web: bool = False
    mirror: str | None = None  # folder of pages in place of the web
    engine: str = ""
    vision_model: str | None = None
    speech_model: str = "whisper-1"  # OpenAI speech-to-text model, for recordings
    unpack_into: str | None = None

    @property
    def adds_tools(self) -> bool:
        """Whether a run gets tools besides its search."""
        return bool(self.web or self.mirror or self.names != "auto")


class RunChoice(_StrictModel):
    """How a run goes: prompts of one's own by name, calls at once, approval of its steps, and a package's mode."""

    prompts: dict[str, str] = {}
    parallel: int = Field(default=PARALLEL, ge=1)
    approve: bool = False
    mode: str | None = None


class BudgetChoice(_StrictModel):
    """The most that all models of a run may take together."""

    calls: int | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    dollars: float | None = Field(default=None, ge=0, allow_inf_nan=False)


# 16 fields: those of the YAML page that users write and that the heads of traces hold
class Configuration(_StrictModel):
    """The configuration of a run."""

    model: str = "local"
    execution_model: str | None = None
    models: str | None = None  # file of named models
    preset: str = "auto"
    format: str | None = None
    limits: dict[str, Any] = {}  # overrides of the preset's limits
    documents: str | None = None
    store: StoreChoice = StoreChoice()
    tools: ToolChoice = ToolChoice()
    budget: BudgetChoice = BudgetChoice()
    run: RunChoice = RunChoice()
    snapshots: str | None = None  # a folder for a snapshot after every write
    memory: str | None = None  # a file of claims
    user: str | None = None  # whose memory, with what this user said in it
    as_of: str | None = None  # a time, for an earlier state of the memory
    certify: bool = False  # show the answer only as far as its certificate allows

    def with_flags(self, flags: Mapping[str, Any]) -> Configuration:
        """Return the configuration with the flags of a command, by dotted name ("store.at").

        Values may be paths. None means that a flag was not given. Raises BadInput for an invalid value.
        """
        values = self.model_dump()
        for name, value in flags.items():
            if value is None or value is False or value == {}:
                continue
            part, _, field = name.partition(".")
            new_value: Any = str(value) if isinstance(value, Path) else value
            if name == "limits":
                values["limits"] = _merge_limits(values["limits"], new_value)
            elif field:
                values[part][field] = new_value
            else:
                values[name] = new_value
        return _validate(values, "the command")

    def only(self, fields: Collection[str]) -> tuple[Configuration, list[str]]:
        """Return the configuration with only these fields, and the names of the other fields that were set.

        A field is named as "tools.web", or "budget" for all of it.
        """
        values, dropped = self.model_dump(exclude_unset=True), list[str]()
        for name, value in list(values.items()):
            inner = getattr(type(self).model_fields[name].annotation, "model_fields", None)
            for field in list(value) if inner and name not in fields else []:
                if f"{name}.{field}" not in fields:
                    dropped.append(f"{name}.{field}")
                    del value[field]
            if not inner and name not in fields:
                dropped.append(name)
                del values[name]
        return _validate(values, "the configuration"), dropped

    def limits_for(self, name: str, *, with_tools: bool = False) -> Limits:
        """Return the limits for a model, for a run with tools besides the search or with attached files.

        Raises UnknownName and BadInput for invalid settings.
        """
        from kgot_lab.llm import connect
        from kgot_lab.loop.limits import limits_for

        if self.format not in {None, "default", "gaia"}:
            raise BadInput(f"--format is default or gaia, not {self.format!r}")
        if "preset" in self.limits:
            raise BadInput("the preset is no single limit: give preset: NAME (--preset NAME)")
        preset = self.preset
        if preset == "auto" and self.model.startswith("recorded:"):
            preset = getattr(connect(self.model), "preset", "") or "auto"
        with_tools = bool(with_tools or self.tools.adds_tools or self.run.mode)
        limits = limits_for(name, preset, self.format, with_tools=with_tools)
        return limits.but(**self.limits) if self.limits else limits

    def to_yaml(self, limits: Limits) -> str:
        """Convert the configuration to YAML that can be loaded again.

        It holds the model, the chosen preset and what differs from the defaults. The full limits are in the
        first event of a run. Passwords and keys in addresses are left out.
        """
        changed = self.model_dump(exclude_defaults=True, mode="json")
        page = _mask_value({"model": self.model, **changed, "preset": limits.preset.rstrip("*")})
        return yaml.safe_dump(page, sort_keys=False, allow_unicode=True)


def _mask_value(value: Any) -> Any:
    """Mask the passwords and keys in the addresses of a value, at any depth."""
    if isinstance(value, dict):
        return {name: _mask_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_mask_value(item) for item in value]
    return mask_secrets(value) if isinstance(value, str) else value


def _merge_limits(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two sets of limits, where the second takes precedence. Limits by role are merged too."""
    merged = {**base, **overrides}
    for name in base.keys() & overrides.keys():
        if isinstance(base[name], dict) and isinstance(overrides[name], dict):
            merged[name] = {**base[name], **overrides[name]}
    return merged


def read_configuration(path: Path | None) -> Configuration:
    """Read the configuration in a file, or return the default one if `path` is None.

    Raises BadInput, naming the file and the field.
    """
    if path is None:
        return Configuration()
    data = read_yaml(path, "the configuration")
    if not isinstance(data, dict | None):
        form = f"fields with values, such as `model: local`, not {type(data).__name__}"
        raise BadInput(f"the configuration {path} is a list of {form}")
    return _validate(data or {}, str(path))


def traced_configuration(about: Mapping[str, Any]) -> Configuration:
    """Read the configuration in the head of a trace, for resuming the run.

    The options that wipe or keep a store are cleared, since they applied to the start.
    """
    data = yaml.safe_load(str(about.get("configuration", ""))) or {}
    recorded = _validate(data, "the head of the trace") if isinstance(data, dict) else Configuration()
    store = recorded.store.model_copy(update={"wipe": False, "graph": None})
    if recorded.store.graph is not None and recorded.store.keep:
        store = store.model_copy(update={"at": recorded.store.graph})
    elif recorded.store.graph is not None and "://" in recorded.store.graph:
        # the namespace is the one the graph was read from
        store = store.model_copy(update={"namespace": None})
    return recorded.model_copy(update={"store": store.model_copy(update={"keep": False}), "limits": {}})


def _validate(data: Mapping[str, Any], source: str) -> Configuration:
    try:
        return Configuration.model_validate(data)
    except ValidationError as error:
        raise BadInput(f"{source}: {': '.join(field_problem(error, _field_names()))}") from None


def _field_names() -> list[str]:
    parts: dict[str, type[BaseModel]] = {"store": StoreChoice, "tools": ToolChoice, "budget": BudgetChoice}
    parts["run"] = RunChoice
    inner = {name: [f"{name}.{field}" for field in part.model_fields] for name, part in parts.items()}
    return [field for name in Configuration.model_fields for field in inner.get(name, [name])]


def parse_limits(settings: Iterable[str]) -> dict[str, Any]:
    """Parse limits from NAME=VALUE settings, such as steps=3 or reply_tokens.vote=500.

    Raises BadInput for a setting of another form.
    """
    limits: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"a limit is NAME=VALUE, as in steps=3 or reply_tokens.vote=500, not {setting!r}")
        try:
            value = yaml.safe_load(text) if text.strip() else ""
        except yaml.YAMLError:
            raise BadInput(f"the value of the limit {name.strip()} cannot be read: {text}") from None
        part, _, role = name.strip().partition(".")
        limits = _merge_limits(limits, {part: {role: value} if role else value})
    return limits
