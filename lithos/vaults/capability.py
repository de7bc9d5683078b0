"""The capability that serves several vaults from one process."""

from __future__ import annotations

from lithos.kernel.capability import Capability

#: `access` is needed because a caller's token determines the vaults that the caller may use.
VAULTS = Capability(name="vaults", needs=("access",), checks=("lithos.vaults.checks",))
