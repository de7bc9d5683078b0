"""Shell completion scripts that `lithos completion` prints in any working directory."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from lithos.app.main import main
from lithos.app.options import make_parser

BASH = shutil.which("bash")

#: Typed words and the expected completions. The last typed word is unfinished.
TYPED = {
    "lithos rest": ["restore-note", "restore"],
    "lithos undo --ag": ["--agent"],
    "lithos history --de": ["--deleted"],
    "lithos connect cl": ["claude-code", "claude-desktop", "claude-ai"],
    "lithos connect cursor --scope p": ["project"],
    "lithos connect --wr": ["--write"],
    "lithos serve --transport h": ["http"],
    "lithos inspect h": ["health"],
    "lithos search --hy": ["--hybrid"],
}
ASK = """
eval "$1"; shift
for line; do
    COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
    _shtab_lithos lithos "${COMP_WORDS[COMP_CWORD]}" && printf '%s\\n' "${COMPREPLY[*]}"
done
"""


def script_for(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.needs("clients")
@pytest.mark.skipif(BASH is None, reason="there is no bash to complete in")
def test_bash_completes_commands_options_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert BASH is not None
    command = [BASH, "--norc", "-c", ASK, "ask", script_for("bash", capsys), *TYPED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert [line.split() for line in done.stdout.splitlines()] == list(TYPED.values())


def test_zsh_script_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    script = script_for("zsh", capsys)
    assert script.startswith("#compdef lithos")
    (choices,) = [action.choices for action in make_parser()._actions if action.dest == "command"]
    assert choices
    assert [name for name in choices if f"{name}:" not in script] == []


def test_broken_configuration_does_not_disturb_shell_startup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITHOS_PORT", "none")
    assert "_shtab_lithos" in script_for("bash", capsys)


def test_json_output_contains_the_completion_script(capsys: pytest.CaptureFixture[str]) -> None:
    """Behaviour 209."""
    script = script_for("bash", capsys)
    assert main(["completion", "bash", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": "bash", "script": script.rstrip("\n")}
