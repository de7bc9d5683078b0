"""Secrets that are given as files (docs/spec/cli-config.md §5)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lithos.kernel.configuration.load import load_config
from lithos.kernel.configuration.secret_files import LARGEST_SECRET
from lithos.kernel.configuration.sources import ConfigError
from lithos.server.settings import ServerConfig
from tests.e2e.process import clean_environment

SHORT, LONG = "LITHOS_AUTH_TOKEN_FILE", "LITHOS_SERVER__AUTH_TOKEN_FILE"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("hush-hush\n")
    return path


def refusal(**environment: str) -> str:
    """Return the error about this environment."""
    with pytest.raises(ConfigError) as caught:
        load_config(environment=environment)
    return str(caught.value)


@pytest.mark.parametrize("variable", [SHORT, LONG])
def test_token_is_read_from_a_file(secret: Path, variable: str) -> None:
    loaded = load_config(environment={variable: str(secret)})
    assert loaded.config.of(ServerConfig).auth_token == "hush-hush"
    assert loaded.sources["server.auth_token"] == f"environment variable {variable}"
    assert loaded.warnings == ()


def test_empty_file_variable_counts_as_unset(secret: Path) -> None:
    """Compose passes a variable without a value as an empty text."""
    loaded = load_config(environment={SHORT: "", "LITHOS_AUTH_TOKEN": "plain"})
    assert loaded.config.of(ServerConfig).auth_token == "plain"


def test_secret_and_its_file_together_are_refused(secret: Path) -> None:
    told = refusal(**{SHORT: str(secret), "LITHOS_AUTH_TOKEN": "plain"})
    assert "both set" in told
    assert "unset one" in told
    assert "plain" not in told


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "must have one line"),
        (b" \n", "must have one line"),
        (b"hush\nhush\n", "must have one line"),
        (b"h" * (LARGEST_SECRET + 1), "must have one line"),
        (b"hush\xff", "not UTF-8"),
    ],
)
def test_unusable_file_is_refused_without_its_content(
    tmp_path: Path, content: bytes | None, expected: str
) -> None:
    """A server that cannot read its token must not start without one."""
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    told = refusal(**{SHORT: str(path)})
    assert expected in told
    assert str(path) in told
    assert "hush" not in told.replace(str(path), "")


def test_other_settings_have_no_file_variable(secret: Path) -> None:
    loaded = load_config(environment={"LITHOS_HOST_FILE": str(secret)})
    assert loaded.config.of(ServerConfig).host == ServerConfig().host
    assert "LITHOS_HOST_FILE is not a setting" in loaded.warnings[0]


def test_doctor_reports_an_unusable_file(tmp_path: Path) -> None:
    """`doctor` reports all problems instead of stopping at the first one."""
    gone = tmp_path / "gone"
    run = subprocess.run(
        [sys.executable, "-m", "lithos", "--data-dir", str(tmp_path / "data"), "doctor"],
        env={**clean_environment(), SHORT: str(gone)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 1
    assert f"file {gone} from environment variable {SHORT} cannot be read" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr
