"""Settings: each has a description of one line, and secrets are marked (cli-config §4)."""

from __future__ import annotations

from lithos.kernel.configuration.catalogue import SETTINGS


def test_every_setting_has_a_one_line_description() -> None:
    def is_described(text: str) -> bool:
        return text.endswith(".") and "\n" not in text and (text[0].isupper() or text[0] == "`")

    bad = [key for key, each in SETTINGS.items() if not (is_described(each.description) and each.allowed)]
    assert bad == []


def test_secret_settings_are_marked() -> None:
    secret = {key for key, setting in SETTINGS.items() if setting.secret}
    assert secret == {"server.auth_token"}


def test_environment_variables_are_named_after_section_and_key() -> None:
    assert SETTINGS["server.oauth.issuer"].variable == "LITHOS_SERVER__OAUTH__ISSUER"
