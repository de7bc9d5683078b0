"""Harmful configuration files: each is refused with one sentence, within time and memory limits."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from lithos.kernel.configuration.load import load_config
from lithos.kernel.configuration.sources import MOST_PROBLEMS, MOST_UNKNOWN, ConfigError
from lithos.kernel.configuration.vaults import load_vaults
from lithos.kernel.configuration.yaml_file import LARGEST_FILE
from lithos.server.settings import ServerConfig
from tests.e2e.process import clean_environment


def nested_aliases(levels: int = 12) -> str:
    """Return nested lists.

    Each list has nine aliases of the previous list, so there are 9 to the power of `levels` texts.
    """
    rows = ["l0: &l0 [lol, lol, lol]"]
    rows += [f"l{at}: &l{at} [{', '.join([f'*l{at - 1}'] * 9)}]" for at in range(1, levels)]
    return "".join(f"{row}\n" for row in rows)


def refusal(tmp_path: Path, text: str | bytes) -> str:
    """Return the error that both readers of the file report. Neither reader takes long."""
    path = tmp_path / "lithos.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def load() -> None:
        load_vaults(config_path=path, environment={})
        load_config(config_path=path, environment={})

    with pytest.raises(ConfigError) as caught:
        load()
    assert len(str(caught.value)) < 400 * (MOST_PROBLEMS + 1)
    return str(caught.value)


HOSTILE = (
    ("aliases in a value", nested_aliases() + "server: {port: *l11}\n", "server.port: [[[["),
    ("aliases in a map", nested_aliases() + "server: {port: {a: *l11}}\n", "server.port: {'a': [[[["),
    ("aliases as vaults", nested_aliases() + "vaults: *l11\n", "not a mapping of names"),
    ("an alias of itself", "server: &a\n  server: *a\n  port: *a\n", "server.port: {'server': {'server'"),
    ("many sixties", f"server:\n  port: {':'.join(['59'] * 30_000)}\n", "not valid YAML at line 2"),
    ("a long number", f"server:\n  port: {'9' * 90_000}\n", "not valid YAML at line 2"),
    ("half of a character in a path", 'storage:\n  vault: "\\ud800"\n', "storage.vault: '\\ud800'"),
    ("half of a character in a text", 'server:\n  host: "\\ud800"\n', "server.host: '\\ud800'"),
    ("half of a character in a list", 'server:\n  allowed_hosts: ["\\ud800"]\n', "server.allowed_hosts: "),
    ("half of a character in a name", 'agents:\n  "\\ud800": {write: ["**"]}\n', "agents: "),
    ("half of a character of a vault", 'vaults:\n  a: {path: "\\ud800"}\n', "the path is not valid text"),
    ("deep lists", "a: " + "[" * 100_000, "not valid YAML"),
    ("deep items", "- " * 50_000 + "a", "not valid YAML"),
    ("Python", "server: !!python/object/apply:os.system ['false']\n", "not valid YAML at line 1"),
    ("UTF-16", "server: {}\n".encode("utf-16"), "not UTF-8 text"),
    ("zero bytes", b"\0" * 100, "not valid YAML"),
    ("two documents", "server: {}\n---\nserver: {}\n", "not valid YAML"),
    ("a huge file", f"a: '{'x' * LARGEST_FILE}'\n", f"more than {LARGEST_FILE:,} bytes"),
)


@pytest.mark.parametrize(("text", "told"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_hostile_configuration_is_refused_in_one_sentence(
    tmp_path: Path, text: str | bytes, told: str
) -> None:
    """behaviour 410"""
    assert told in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("server: {auth_token: secret}\nserver: {port: 1}\n", "gives server twice, on lines 1 and 2"),
        ("server:\n  port: 1\n  host: a\n  port: 1\n", "gives server.port twice, on lines 2 and 4"),
        ("x: [{a: 1, a: 2}]\n", "gives x.a twice"),
        ("vaults:\n  a: {path: x, path: y}\n", "gives vaults.a.path twice"),
        ("agents: {bot: {write: [a]}, bot: {write: [b]}}\n", "gives agents.bot twice"),
    ],
)
def test_duplicate_key_is_refused_with_both_lines(tmp_path: Path, text: str, told: str) -> None:
    """behaviour 410: otherwise the first of two sections, and the token in it, would be lost silently."""
    assert told in refusal(tmp_path, text)


def test_yaml_merge_keys_do_not_count_as_duplicates(tmp_path: Path) -> None:
    path = tmp_path / "lithos.yaml"
    path.write_text("x: &x {port: 1}\ny: &y {host: h}\nserver:\n  <<: *x\n  <<: *y\n  port: 2\n")
    server = load_config(config_path=path, environment={}).config.of(ServerConfig)
    assert (server.host, server.port) == ("h", 2)


def test_unknown_keys_are_reported_up_to_a_limit(tmp_path: Path) -> None:
    """behaviour 410"""
    path = tmp_path / "lithos.yaml"
    path.write_text("".join(f"k{number}: 1\n" for number in range(50_000)) + f"? {'server' * 20_000}\n: 1\n")
    warnings = load_config(config_path=path, environment={}).warnings
    assert len(warnings) == MOST_UNKNOWN + 1
    assert warnings[-1].startswith("49,981 further keys")
    assert max(map(len, warnings)) < 400
    told = refusal(tmp_path, "vaults:\n" + "".join(f"  {number}: {{}}\n" for number in range(1_000)))
    assert told.endswith("950 more problems are not shown. Correct these first.")
    keys = ", ".join(f"k{number}: 1" for number in range(1_000))
    assert refusal(tmp_path, f"vaults: {{a: {{path: x, {keys}}}}}").count("is not a setting") == MOST_UNKNOWN


@pytest.mark.slow
def test_hostile_configuration_ends_with_exit_code_2_within_limits(tmp_path: Path) -> None:
    """behaviour 410: there is no traceback, and the memory is limited."""
    path = tmp_path / "lithos.yaml"
    for text in (HOSTILE[0][1], HOSTILE[4][1], HOSTILE[6][1], HOSTILE[-1][1]):
        path.write_text(str(text))
        done = subprocess.run(
            [sys.executable, "-m", "lithos", "-c", str(path), "-d", str(tmp_path / "data"), "stats"],
            capture_output=True, text=True, env=clean_environment(), timeout=60, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)),
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert done.stderr.startswith("lithos: ")
        assert "Traceback" not in done.stderr
