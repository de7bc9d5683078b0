"""The capability that serves several vaults from one process."""

from __future__ import annotations

from lithos.kernel.capability import Capability

#: Callers are assigned to vaults by their tokens.
VAULTS = Capability(name="vaults", needs=("access",), checks=("lithos.vaults.checks",))
