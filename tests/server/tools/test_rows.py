"""Conversion of answer rows, with the exceptions that the owner of a row class registers."""

from __future__ import annotations

from attrs import frozen

from lithos.server.tools.serialization import IF_SAID, LEFT_OUT, register_row, renamed, row_of


@frozen
class _Value:
    title: str
    digest: str = "d"
    secret: str = "s"
    reason: str | None = None


def test_row_conversion_follows_registered_exceptions() -> None:
    """Exceptions apply even if they are registered after the first row of the class was converted."""
    assert row_of(_Value("t")) == {"title": "t", "digest": "d", "secret": "s", "reason": None}

    register_row(_Value, digest=renamed("hash"), secret=LEFT_OUT, reason=IF_SAID)

    assert row_of(_Value("t")) == {"title": "t", "hash": "d"}
