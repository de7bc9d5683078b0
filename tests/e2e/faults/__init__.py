"""Failures as a server meets them, each with counts of the attempts and checks of the state afterwards.

`tests/e2e/test_faults.py` runs them; the nightly run has more of each.
A failure that is not survived raises `AssertionError`.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Outcome:
    """The actions on a server, and the findings afterwards; both with counts."""

    tried: str
    result: str
