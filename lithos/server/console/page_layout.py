"""Headers, static files and cookies of all pages, for one vault and for several vaults."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from quart import Response, request, send_from_directory

from lithos.server.console.sessions import COOKIE, LIFE

STATIC: Final = Path(__file__).parent / "static"
#: Seconds for which a browser caches the stylesheet and the script. Changed files get new addresses.
STATIC_AGE: Final = 86_400
#: Path of the console. Browsers send its cookies only for this path and the paths below.
PLACE: Final = "/console"
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def static_file(name: str) -> Response:
    """Return the stylesheet, the script or the icon."""
    return await send_from_directory(STATIC, name, cache_timeout=STATIC_AGE)


def add_headers(response: Response) -> Response:
    """Return the response with the headers that every page has. Headers that the page has set are kept."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def set_cookie(response: Response, session_id: str, place: str = PLACE) -> None:
    """Set the session cookie for the console at the path `place`."""
    response.set_cookie(
        COOKIE,
        session_id,
        max_age=LIFE // timedelta(seconds=1),
        path=place,
        httponly=True,
        secure=_is_encrypted(),
        samesite="Strict",
    )


def sent_address() -> str:
    """Return the address of the request as the client sent it, without decoding."""
    scope: Any = request.scope
    query = scope["query_string"].decode("latin-1")
    return str(scope["raw_path"].decode("ascii")) + (f"?{query}" if query else "")


def digest_of(folder: Path) -> str:
    """Return a short hash of the static files.

    The hash changes with the files, so browsers then fetch the files again.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return blake2b(b"".join(path.read_bytes() for path in files), digest_size=6).hexdigest()


def _is_encrypted() -> bool:
    """Return whether the browser uses TLS to reach this server or its proxy."""
    forwarded = request.headers.get("X-Forwarded-Proto", "").partition(",")[0].strip().lower()
    return request.scheme == "https" or forwarded == "https"
