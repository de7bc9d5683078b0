"""Failures that a server must survive. Each failure counts its attempts and checks the final state.

`tests/e2e/test_faults.py` causes these failures, and the nightly run repeats them more often. A function
raises `AssertionError` if the server does not survive its failure.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Outcome:
    """Counts of the actions on a server, and counts of the checks that followed."""

    tried: str
    result: str
