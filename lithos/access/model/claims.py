"""Claims of access tokens from a foreign authorization server, and the principal for verified claims."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lithos.kernel.values.principals import RIGHTS, Principal, Rights, is_reserved

#: Accepted signature algorithms. `none` and algorithms with a shared key are never accepted.
ALGORITHMS: Final = ("RS256", "ES256", "EdDSA")
LEEWAY: Final = timedelta(seconds=60)
#: Maximum characters of a name, and maximum number of checked values in a rights claim.
_LONGEST: Final = 200
_MOST_VALUES: Final = 100


class NoPrincipal(Exception):
    """Error for a verified token that grants no access.

    The message gives the reason and never quotes the token.
    """


def principal_of(claims: Mapping[str, Any], rights_claim: str, rights: Mapping[str, str]) -> Principal:
    """Return the principal that these claims describe. Raises `NoPrincipal`.

    `rights` maps values of `rights_claim` (a list, or a text of words) to rights. If several values match,
    the highest right counts.
    """
    agent = next((claims[name] for name in ("email", "sub") if _is_name(claims.get(name))), None)
    if agent is None:
        raise NoPrincipal("the token does not name a valid agent")
    given = claims.get(rights_claim)
    values = given.split() if isinstance(given, str) else given
    values = values[:_MOST_VALUES] if isinstance(values, list) else []
    found: list[Rights] = [right for right in RIGHTS if any(_right(rights, each) == right for each in values)]
    if not found:
        raise NoPrincipal(f"its claim {rights_claim} contains no right of this server")
    return Principal(f"{agent} (OAuth)", found[-1], agent, is_connector=True)


def end_of(claims: Mapping[str, Any]) -> datetime:
    """Return the time at which a token ends, including the leeway. Raises `NoPrincipal`."""
    try:
        return datetime.fromtimestamp(int(claims["exp"]), UTC) + LEEWAY
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        raise NoPrincipal("its exp is not a time") from None


def _right(rights: Mapping[str, str], value: object) -> str | None:
    return rights.get(value) if isinstance(value, str) else None


def _is_name(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        return False
    return value.isprintable() and value.strip() == value and not is_reserved(value)
