"""Several vaults in one process, as a capability."""

from __future__ import annotations

from lithos.kernel.capability import Capability

#: Each vault is known by its tokens.
VAULTS = Capability(name="vaults", needs=("access",), checks=("lithos.vaults.checks",))
