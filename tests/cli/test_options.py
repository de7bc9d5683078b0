"""What the parser repeats of `core`, since importing it would take too long."""

from __future__ import annotations

from lithos.cli import options
from lithos.core.evaluation.questions import DEEPEST, MODES
from lithos.core.principals import TOKEN_RIGHTS
from lithos.core.proposals import STATUSES
from lithos.services.upkeep.reconcile_indices import SCOPES


def test_the_parser_knows_the_scopes_and_modes() -> None:
    assert options.SCOPES == SCOPES
    assert options.TEST_MODES == MODES
    assert options.RIGHTS == TOKEN_RIGHTS
    assert options.PROPOSAL_STATUSES == STATUSES
    assert options._rank(str(DEEPEST)) == DEEPEST
