"""Health checks for access to the server."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from lithos.access.files.tokens import LOCK, TOKENS, TokensUnreadable, read_tokens
from lithos.kernel.values.findings import (
    CONFIGURATION,
    DOCTOR,
    CheckFinding,
    Installation,
    check,
    fail,
    has_data,
    ok,
    warn,
)
from lithos.server.http.access import AccessPolicy, open_bind_warning
from lithos.server.settings import ServerConfig


def are_asked_for(private: Path) -> bool:
    """Return whether a server here requires a token, or the tokens are unreadable."""
    try:
        return read_tokens(private) is not None
    except TokensUnreadable:
        return True


@check("open", CONFIGURATION, place=1, when=lambda each: each.is_outside)
def check_open(patient: Installation) -> Iterator[CheckFinding]:
    """Report whether every caller who reaches the server may use it."""
    server = patient.config.of(ServerConfig)
    opening = open_bind_warning(AccessPolicy(server.host, server.auth_token))
    if opening is not None and not are_asked_for(patient.private):
        yield warn(opening, "")


@check("tokens", DOCTOR, place=50, when=has_data)
def check_tokens(patient: Installation) -> Iterator[CheckFinding]:
    """Check that only the owner of the tokens can read them, and report expired tokens."""
    private, now = patient.private, patient.clock()
    try:
        tokens = read_tokens(private)
    except TokensUnreadable as trouble:
        yield fail(
            f"All named tokens are refused, and no other caller has access: {private / TOKENS} "
            f"{trouble.why}.",
            "Restore a copy of the file, or move the file away and create new tokens (lithos token create).",
        )
        return
    if tokens is None:
        yield ok("No named tokens are defined.")
        return
    for name in (TOKENS, LOCK):
        mode = stat.S_IMODE((private / name).stat().st_mode) if (private / name).exists() else 0
        if mode & 0o077:
            yield warn(
                f"{private / name} has mode {mode:04o}: other users may read or change the tokens.",
                f"Restrict its mode: chmod 600 {private / name}",
            )
    expired = [token.name for token in tokens if token.has_expired(now) and not token.is_pending]
    if expired:
        more = f" and {len(expired) - 5} more" if len(expired) > 5 else ""
        yield warn(
            f"Expired tokens: {', '.join(expired[:5])}{more}.",
            "Callers with these tokens are refused. Revoke them (lithos token revoke), and "
            "create new ones if needed.",
        )
    if not tokens:
        yield warn(
            "No named token is left, and the server still refuses all callers except its owner's commands.",
            "Create a token (lithos token create), or open the server to everyone who can reach "
            "it: lithos token off",
        )
    admins = sum(token.rights == "admin" for token in tokens)
    yield ok(f"Named tokens: {len(tokens)}, {admins} of them for administration.")
