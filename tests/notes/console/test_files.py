"""Vault files in the console.

Images are shown inline, all other files are downloads, and no path reaches files outside the vault.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest

from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.console import pages_files as files
from tests.server.console.visiting import visiting

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
SECRET = b"the secret"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Return a data directory with images, and with secret files that no request may reach."""
    knowledge = tmp_path / "data" / "knowledge"
    (knowledge / "pics" / "deep").mkdir(parents=True)
    (knowledge / ".hidden").mkdir()
    (knowledge / "drafts").mkdir()
    (tmp_path / "data" / "secret.png").write_bytes(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.png").write_bytes(SECRET)
    (knowledge / ".hidden" / "secret.png").write_bytes(SECRET)
    (knowledge / "drafts" / "secret.png").write_bytes(SECRET)
    (knowledge / ".secret.png").write_bytes(SECRET)
    (knowledge / "pics" / "a b.png").write_bytes(PNG)
    (knowledge / "pics" / "deep" / "far.jpg").write_bytes(PNG)
    for name in ("page.html", "drawing.svg", "paper.pdf", "script.js", "style.css", "noext", "note.md"):
        (knowledge / name).write_bytes(b"<script>pwned()</script>")
    (knowledge / "out.png").symlink_to(tmp_path / "outside" / "secret.png")
    (knowledge / "outdir").symlink_to(tmp_path / "outside")
    (knowledge / "dotted.png").symlink_to(knowledge / ".hidden" / "secret.png")
    (knowledge / "drafted.png").symlink_to(knowledge / "drafts" / "secret.png")
    (knowledge / "linked.png").symlink_to(knowledge / "pics" / "a b.png")
    os.mkfifo(knowledge / "pipe.png")
    return tmp_path / "data"


async def test_images_are_shown_inline_and_other_files_are_downloads(vault: Path) -> None:
    downloads = ("page.html", "drawing.svg", "paper.pdf", "script.js", "style.css", "noext", "note.md")
    async with visiting(vault) as person:
        for path in ("pics/a b.png", "pics/deep/far.jpg", "linked.png"):
            answer = await person.get(f"/console/files/{quote(path)}")
            assert (answer.status_code, answer.content) == (200, PNG), path
            assert answer.headers["content-type"] in ("image/png", "image/jpeg")
            assert answer.headers["content-disposition"].startswith("inline;")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "sandbox" in answer.headers["content-security-policy"]
        for name in downloads:
            answer = await person.get(f"/console/files/{name}")
            assert answer.status_code == 200, name
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''{name}"
            policy = "default-src 'none'; frame-ancestors 'none'; sandbox"
            assert answer.headers["content-security-policy"] == policy
            assert answer.headers["x-content-type-options"] == "nosniff"
        # A file name cannot inject headers or HTML.
        name = 'x"; filename=evil.html <script>pwned().png'
        (vault / "knowledge" / name).write_bytes(PNG)
        answer = await person.get(f"/console/files/{quote(name, safe='')}")
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == f"inline; filename*=UTF-8''{quote(name, safe='')}"
        # A request with the file name alone is redirected to the file in its folder.
        person.lithos.server.get(Catalogue).see_file("pics/deep/far.jpg", is_there=True)
        answer = await person.get("/console/files/far.jpg")
        assert (answer.status_code, answer.url.path) == (200, "/console/files/pics/deep/far.jpg")


TRAVERSALS = (
    "../secret.png", "..%2fsecret.png", "%2e%2e/secret.png", "%2e%2e%2fsecret.png",
    "%252e%252e%252fsecret.png", "pics/../../secret.png", "pics/..%2f..%2fsecret.png", "....//secret.png",
    "..%5csecret.png", "..\\secret.png", "./secret.png", "/secret.png", "//secret.png", "%2fetc/passwd",
    "/etc/passwd", "..;/secret.png", "%00secret.png", "pics/a b.png%00.html", "pics%2fa b.png/..",
    "..%c0%afsecret.png", "%c0%ae%c0%ae/secret.png", ".hidden/secret.png", ".secret.png",
    "%2ehidden/secret.png", "pics/.././.hidden/secret.png", "out.png", "outdir/secret.png", "dotted.png",
    "pipe.png", "pics", "pics/", "drafts/secret.png", "drafted.png", "DRAFTS/secret.png",
    "drafts//secret.png", "x/../drafts/secret.png", "a" * 5_000, "pics/" * 900 + "x.png",
    "file:///etc/passwd", "C:\\secret.png", "~/secret.png", "%EF%BC%8E%EF%BC%8E/secret.png", "\u202e.png",
)  # fmt: skip


async def test_no_path_reaches_outside_the_vault_or_hidden_files(vault: Path) -> None:
    async with visiting(vault, storage={"ignore": ("drafts/**",)}) as person:
        for path in TRAVERSALS:
            raw = path if "%" in path else quote(path, safe="/.~;:\\")
            for address in {raw, quote(path, safe="")}:
                answer = await person.client.get(f"/console/files/{address}")
                assert answer.status_code in (302, 308, 400, 404), (address, answer.status_code)
                assert SECRET not in answer.content, address
                assert b"root:" not in answer.content, address


async def test_large_files_are_streamed_and_oversized_files_are_refused(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = os.urandom(3_000_000)
    (vault / "knowledge" / "large.bin").write_bytes(large)
    async with visiting(vault) as person:
        assert (await person.get("/console/files/large.bin")).content == large
        async with person.client.stream("GET", "/console/files/large.bin") as response:
            assert response.headers["content-length"] == "3000000"  # The client disconnects before the end.
        monkeypatch.setattr(files, "LARGEST", 1_000_000)
        refused = await person.get("/console/files/large.bin")
        assert refused.status_code == 413
        assert "3,000,000 bytes" in refused.text


async def test_files_require_a_login(vault: Path) -> None:
    """behaviour 237: if a token is set, no file is shown without a login."""
    async with visiting(vault, token="a-token") as person:
        answer = await person.client.get("/console/files/paper.pdf")
        assert answer.status_code == 302
        assert answer.headers["location"].startswith("/console/login")
        await person.submit("/console/login", token="a-token")
        assert (await person.get("/console/files/paper.pdf")).status_code == 200
