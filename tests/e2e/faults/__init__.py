"""Faults as a server meets them, each with counts of what was tried and checks of what must hold after.

`tests/e2e/test_faults.py` runs them; the nightly run has more of each.
A fault that is not survived raises `AssertionError`.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Outcome:
    """What was done to a server, and what was found afterwards; both with counts."""

    tried: str
    result: str
