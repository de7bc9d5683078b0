"""The capability that adopts the memory folders of clients."""

from __future__ import annotations

from lithos.kernel.capability import Capability

ADOPT = Capability(name="adopt")
