"""Tiers of embeddings: choosing one in the configuration, and waiting until a server answers with it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import attrs
import trio

from lithos.app import Server
from lithos.config.sections import SearchConfig

#: Seconds for all chunks of a collection to get their vectors, and between two looks.
PATIENCE = 3_600.0
LOOK = 0.5


def has_tiers() -> bool:
    """Whether this server knows more than one tier (`search.tier`)."""
    return "tier" in attrs.fields_dict(SearchConfig)


def search_config(tier: str, **settings: Any) -> SearchConfig:
    """The search section for a tier. Raises `ValueError` where the server has only static embeddings."""
    if has_tiers():
        return SearchConfig(tier=tier, **settings)
    if tier != "static":
        raise ValueError(f"this server has no search.tier, so {tier!r} cannot be measured; use static")
    return SearchConfig(**settings)


async def wait_for_tier(server: Server, tier: str) -> None:
    """Return once `/health` says that the tier answers. Raises `TimeoutError` when it does not in an hour."""
    await server.searchable()
    if not has_tiers():
        return
    told: Mapping[str, Any] = {}
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        told = await tier_told(server)
        if told.get("tier", tier) == tier:
            return
        await trio.sleep(LOOK)
    raise TimeoutError(f"the tier {tier} is not in use after {PATIENCE:.0f} s; /health says {dict(told)}")


async def tier_told(server: Server) -> Mapping[str, Any]:
    """What `/health` says of the embedding model."""
    _, body = await server.state.report()
    component = body["components"]["embedding_model"]
    return {**component, **component.get("details", {})}
