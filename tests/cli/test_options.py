"""What the parser repeats of `core`, and what it says of retired words."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["top", "--json"], "`lithos top` is no longer a command. Use `lithos inspect health`"),
        (["bundle", "forms"], "Releases run `.ci/bundle.py`."),
        (["serve", "--telemetry-console"], "`--telemetry-console` is no longer an option."),
    ],
)
def test_retired_words_say_what_to_use_instead(
    typed: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        options.parse_arguments(typed)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
