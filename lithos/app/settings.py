"""Parts of the configuration as the values that the core works with."""

from __future__ import annotations

from typing import TypeVar

import attrs

from lithos.config import LcmaConfig
from lithos.core.salience import LearningSettings, UsageSettings

S = TypeVar("S", LearningSettings, UsageSettings)


def learning_settings(config: LcmaConfig) -> LearningSettings:
    """How fast salience moves."""
    return _pick(LearningSettings, config)


def usage_settings(config: LcmaConfig) -> UsageSettings:
    """What counts as use."""
    return _pick(UsageSettings, config)


def _pick(kind: type[S], config: LcmaConfig) -> S:
    """The settings that have the names of the fields."""
    return kind(**{each.name: getattr(config, each.name) for each in attrs.fields(kind)})
