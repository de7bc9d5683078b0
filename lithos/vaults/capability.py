"""Several vaults in one process, as a capability."""

from __future__ import annotations

from lithos.kernel.capability import Capability

VAULTS = Capability(name="vaults", checks=("lithos.vaults.checks",))
