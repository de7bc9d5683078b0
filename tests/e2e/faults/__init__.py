"""Failures that a server must survive, with counts of the attempts and checks of the final state.

`tests/e2e/test_faults.py` runs these failures, and the nightly run repeats them more often. A failure that
the server does not survive raises `AssertionError`.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Outcome:
    """Counts of the actions on a server, and counts of the checks afterwards."""

    tried: str
    result: str
