"""The capability that evaluates searches."""

from __future__ import annotations

from lithos.kernel.capability import Capability

EVALUATION = Capability(name="evaluation", checks=("lithos.upkeep.evaluation.check",))
