"""`lithos token`: its output on stdout and stderr, and its errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lithos.access.commands import RIGHTS
from lithos.access.files.tokens import TOKENS, digest_of, read_tokens
from lithos.app.main import main
from lithos.kernel.values.principals import TOKEN_RIGHTS
from lithos.notes.model.scopes import Scope

SECRET = re.compile(r"lithos_[\w-]{43}")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def run(data: Path, *arguments: str) -> int:
    return main(["-d", str(data), "token", *arguments])


def test_stdout_contains_only_the_token(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data, "create", "ci", "--agent", "bot", "--rights", "read", "--expires", "0.5") == 0
    told = capsys.readouterr()
    (secret,) = told.out.splitlines()
    assert SECRET.fullmatch(secret)
    assert secret not in told.err
    for word in ("'ci'", "'bot'", "not shown again", "this server can be used only with a token"):
        assert word in told.err
    (token,) = read_tokens(data / ".lithos") or ()
    assert token.digest == digest_of(secret.encode())
    assert token.expires_at is not None
    assert (token.expires_at - token.created_at).total_seconds() == 43_200


def test_json_output_contains_the_token_once_and_no_hints(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(data, "create", "ci", "--json") == 0
    told = capsys.readouterr()
    assert told.err == ""
    created = json.loads(told.out)
    assert SECRET.fullmatch(created.pop("token"))
    assert (created["name"], created["rights"], created["agent"]) == ("ci", "write", None)
    assert run(data, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"tokens": [created], "required": True}


def test_token_list_shows_expired_tokens_but_no_secrets(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(data, "list") == 0
    assert capsys.readouterr().out == "No named tokens are defined.\n"
    run(data, "create", "ci", "--expires", "1")
    secret = capsys.readouterr().out.strip()
    file = data / ".lithos" / TOKENS
    file.write_text(re.sub(r'"expires_at": "\d{4}', '"expires_at": "2020', file.read_text()))
    assert run(data, "list") == 0
    told = capsys.readouterr().out
    assert "expired 2020-" in told
    assert secret not in told
    assert digest_of(secret.encode()) not in told


def test_revoking_the_last_token_reports_that_the_server_stays_closed(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(data, "create", "ci")
    assert run(data, "off") == 1
    capsys.readouterr()
    assert run(data, "revoke", "ci") == 0
    assert "still refuses all callers" in capsys.readouterr().err
    assert run(data, "off") == 0
    assert "Everyone who can reach this server" in capsys.readouterr().err
    assert read_tokens(data / ".lithos") is None


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create", "a b"], 1, "A token name must have"),
        (["create", "owner"], 1, "Choose another name"),
        (["create", "ci", "--agent", " "], 1, "An agent id must have"),
        (["revoke", "nothing"], 1, "so it has no tokens"),
    ],
)
def test_token_command_error_says_what_to_do(
    data: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    assert run(data, *arguments) == code
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["create"],
        ["create", "ci", "--rights", "root"],
        ["create", "ci", "--expires", "0"],
        ["create", "ci", "--expires", "nan"],
        [],
    ],
)
def test_invalid_token_command_line_exits_with_2(data: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(data, *arguments)
    assert ended.value.code == 2
    assert not data.exists()


def test_error_names_the_damaged_token_file_which_is_kept(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(data, "create", "ci")
    (data / ".lithos" / TOKENS).write_text("{")
    capsys.readouterr()
    for arguments in (["list"], ["create", "more"], ["revoke", "ci"], ["off"]):
        assert run(data, *arguments) == 1, arguments
        assert "is damaged" in capsys.readouterr().err
    assert (data / ".lithos" / TOKENS).read_text() == "{"


def test_token_may_be_limited_to_path_patterns(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """behaviour 278"""
    made = ("create", "ci", "--write", "notes/", "logs/*.md", "--write", "!notes/x/", "--propose", "**")
    assert run(data, *made) == 0
    told = capsys.readouterr().err
    assert "changes notes at notes/, logs/*.md, !notes/x/ directly" in told
    assert "at ** wait for approval by a person (lithos proposals)" in told
    (token,) = read_tokens(data / ".lithos") or ()
    assert token.scope == Scope(("notes/", "logs/*.md", "!notes/x/"), ("**",))
    assert run(data, "list") == 0
    assert "write notes/ logs/*.md !notes/x/; propose **" in capsys.readouterr().out
    assert run(data, "list", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["tokens"]
    assert (row["write"], row["propose"]) == (["notes/", "logs/*.md", "!notes/x/"], ["**"])
    assert run(data, "create", "asks", "--propose", "notes/") == 0
    capsys.readouterr()
    assert (read_tokens(data / ".lithos") or ())[1].scope == Scope((), ("notes/",))


@pytest.mark.parametrize("glob", ["notes", "/etc/", "!x/", "a/../b.md", ""])
def test_unusable_pattern_creates_no_token(data: Path, capsys: pytest.CaptureFixture[str], glob: str) -> None:
    assert run(data, "create", "ci", "--write", glob) == 2
    assert "Invalid pattern: the pattern" in capsys.readouterr().err
    assert read_tokens(data / ".lithos") is None


def test_read_only_token_cannot_have_patterns(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data, "create", "ci", "--rights", "read", "--write", "notes/") == 1
    assert "cannot change notes, so --write" in capsys.readouterr().err


def test_parser_accepts_exactly_the_known_rights() -> None:
    assert RIGHTS == TOKEN_RIGHTS
