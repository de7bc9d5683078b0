"""The capability that adopts the memory folders of clients."""

from __future__ import annotations

from lithos.adopt.service_indexes import IndexTrimming, make_loaded
from lithos.adopt.service_sessions import SessionMerging
from lithos.kernel.capability import Background, Capability

ADOPT = Capability(
    name="adopt",
    makers=(make_loaded, IndexTrimming, SessionMerging),
    background=(
        Background(IndexTrimming, IndexTrimming.run),
        Background(SessionMerging, SessionMerging.run),
    ),
    checks=("lithos.adopt.checks",),
)
