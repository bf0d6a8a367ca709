"""The profile model: how to reach the host, which service, which drafter, what the knobs map to, which bursts.

A profile is YAML. `load` finds it, validates it and explains what is wrong and where.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Port = Annotated[int, Field(ge=1, le=65535)]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Connection(Model):
    """How to reach the host. `host: local` runs commands on this machine, without SSH."""

    host: str = Field(min_length=1)
    port: Port | None = None
    user: str | None = None
    identity_file: Path | None = None
    config: Path | None = None  # an ssh_config to read instead of ~/.ssh/config
    known_hosts: Path | None = None
    connect_timeout: float = Field(default=10.0, gt=0)  # seconds for TCP
    keepalive: float = Field(default=5.0, gt=0)  # seconds between keepalives


class Scope(StrEnum):
    SYSTEM = "system"
    USER = "user"


class Service(Model):
    """The service that runs SGLang."""

    unit: str = Field(min_length=1, pattern=r"^[A-Za-z0-9:_.\\@-]+\.service$")
    scope: Scope = Scope.SYSTEM
    # where the server listens as seen from the host; None: from the unit's --host and --port
    host: str | None = None
    port: Port | None = None
    api_key_env: str | None = None  # name of a local environment variable that holds the API key
    start_timeout: float = Field(default=1800.0, gt=0)  # seconds until a start counts as failed
    stop_timeout: float = Field(default=120.0, gt=0)  # seconds to drain before asking to kill


class KnobKind(StrEnum):
    INT = "int"
    FLOAT = "float"
    TEXT = "text"
    SWITCH = "switch"


class Knob(Model):
    """A value that the operator turns, and the flag (or environment variable) behind it."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    flag: str | None = Field(default=None, pattern=r"^--[a-z0-9][a-z0-9-]*$")
    env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    kind: KnobKind = KnobKind.INT
    key: str | None = Field(default=None, min_length=1, max_length=1)  # the key that edits it in the console
    min: float | None = None
    max: float | None = None
    presets: tuple[int | float | str, ...] = ()
    meaning: str = ""


class Bench(Model):
    """The bursts that this profile runs, and the limits on them."""

    concurrency: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = (1, 8)
    context: tuple[Annotated[int, Field(ge=16)], ...] = (512, 8192)  # prompt tokens
    output: Annotated[int, Field(ge=2, le=65536)] = 256  # output tokens per request
    workload: str = "code"
    at: Literal["host", "here"] = "here"
    max_concurrency: Annotated[int, Field(ge=1)] = 64
    max_seconds: Annotated[float, Field(gt=0)] = 120.0  # per cell
    temperature: Annotated[float, Field(ge=0)] = 0.0


class Profile(Model):
    """One host and service to tune."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    about: str = ""
    connection: Connection
    service: Service
    drafter: str | None = None  # path or HF repo id; None: what the unit's flags name
    knobs: tuple[Knob, ...]
    bench: Bench = Bench()
    production: bool = False
    read_only: bool = False
    simulated: bool = False

    def knob(self, name: str) -> Knob:
        """The knob of that name. Raises KeyError."""
        for knob in self.knobs:
            if knob.name == name:
                return knob
        raise KeyError(name)


class ProfileError(Exception):
    """A profile that cannot be used: file, line where known, key, what is wrong, an example."""


def load(name_or_path: str) -> Profile:
    """The profile of that name (the user's folder first, then the shipped ones) or at that path."""
    raise NotImplementedError


def names() -> list[str]:
    """Names of all profiles that can be found, the user's first."""
    raise NotImplementedError
