"""Imports as a capability."""

from __future__ import annotations

from lithos.kernel.capability import Capability
from lithos.services.importing.importing import Importing

IMPORTS = Capability(
    name="imports",
    makers=(Importing,),
    front="lithos.imports.front",
    checks=("lithos.imports.checks",),
)
