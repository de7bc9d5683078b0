"""Server that ignores the access package, although the package is installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from lithos.access.capability import ACCESS, share_keyring
from lithos.access.service.keyring import TokenRing
from lithos.app import capabilities
from lithos.kernel.capability import Pages
from tests.server.console.visiting import visiting


async def test_configured_token_is_the_only_valid_token_without_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    makers = tuple(maker for maker in ACCESS.makers if maker is not share_keyring)
    bare = evolve(ACCESS, makers=makers, pages=Pages(), front=None)
    rest = tuple(bare if each is ACCESS else each for each in capabilities.CAPABILITIES)
    monkeypatch.setattr(capabilities, "CAPABILITIES", rest)
    async with visiting(tmp_path, token="s3cret") as person:
        assert "/console/login" in str((await person.get("/console/system")).url)
        assert (await person.post("/console/login", token="wrong")).status_code == 401
        assert (await person.post("/console/login", token="s3cret")).status_code == 200
        for path in ("", "agents", "system", "identity"):
            await person.look(f"/console/{path}")
        for secret, status in (("s3cret", 200), (person.lithos.server.get(TokenRing).own_token, 401)):
            asked = await person.get("/metrics", authorization=f"Bearer {secret}")
            assert asked.status_code == status
