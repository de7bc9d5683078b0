"""The import capability."""

from __future__ import annotations

from lithos.imports.service.importing import Importing
from lithos.kernel.capability import Capability

IMPORTS = Capability(
    name="imports",
    makers=(Importing,),
    front="lithos.imports.front",
    checks=("lithos.imports.checks",),
)
