"""The demo host with a server that loads in a moment, for tests that are not about how long loading takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ddtui.demo import launch
from ddtui.demo.launch import DemoHost

QUICK = {"SGLANG_STANDIN_LOAD_SECONDS": "0.6", "SGLANG_STANDIN_HEALTH_SECONDS": "0.05"}


@contextmanager
def start(**switches: str) -> Iterator[DemoHost]:
    """`switches`: more of the stand-in's, by their names after `SGLANG_STANDIN_`."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {**QUICK, **{f"SGLANG_STANDIN_{n}": v for n, v in switches.items()}}.items():
            environment.setenv(name, value)
        with launch.start() as host:
            yield host
