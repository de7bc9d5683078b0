"""Adding and removing hooks leaves all other settings, for any file (behaviour 313)."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.clients.connect.formats import CannotEdit
from lithos.clients.hook_files.formats import JsonHooks, TomlHooks
from lithos.clients.hooks.entries import SPELLINGS, guarded, hooks_for, is_hook_of

OPTIONS = ("--data-dir", "/my notes/ü")
BEGIN = guarded(("/opt/lithos",), OPTIONS)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)
)
HOOKS = st.fixed_dictionaries({"command": st.text(max_size=8)}, optional={"timeout": VALUES})
ENTRIES = st.lists(HOOKS | st.fixed_dictionaries({"hooks": st.lists(HOOKS, max_size=2)}) | VALUES, max_size=3)
EVENTS = st.sampled_from(["SessionStart", "sessionStart", "PreCompact", "Stop", "Other"])
TREES = st.dictionaries(st.text(max_size=4).filter(lambda key: key != "hooks"), VALUES, max_size=3)
CLIENTS = st.sampled_from(sorted(SPELLINGS))


@given(
    tree=TREES,
    events=st.none() | st.dictionaries(EVENTS, ENTRIES, max_size=3),
    client=CLIENTS,
    indent=st.sampled_from([None, 2, "\t"]),
)
def test_json_settings_survive_added_and_removed_hooks(
    tree: dict[str, Any], events: dict[str, Any] | None, client: str, indent: int | str | None
) -> None:
    """Behaviour 313."""
    before = tree if events is None else {**tree, "hooks": events}
    text = json.dumps(before, indent=indent, ensure_ascii=False)
    form, is_ours, hooks = JsonHooks({"version": 1}), is_hook_of(client, OPTIONS), hooks_for(client, BEGIN)
    added = form.added(text, hooks)
    assert form.found(added, is_ours) == hooks
    assert form.found(added, is_hook_of(client, ("--data-dir", "/other"))) == {}
    removed = json.loads(form.removed(added, is_ours, text))
    assert {key: value for key, value in removed.items() if key != "version"} == {
        key: value for key, value in before.items() if key != "version"
    }
    assert form.covers(form.removed(added, is_ours, text), text)


@given(
    lines=st.lists(st.sampled_from(["# mine", "a = 1", "[t]", "b = 2.50", "", "[[hooks.Stop]]"]), unique=True)
)
def test_toml_settings_survive_added_and_removed_hooks(lines: list[str]) -> None:
    """Behaviour 313: only the tables of Lithos are added and removed."""
    form, is_ours, hooks = TomlHooks(), is_hook_of("codex", OPTIONS), hooks_for("codex", BEGIN)
    for text in ("\n".join(lines), "\r\n".join([*lines, ""])):
        added = form.added(text, hooks)
        assert added.startswith(text)
        assert form.found(added, is_ours) == hooks
        removed = form.removed(added + "\n# later\n", is_ours, text)
        assert removed.startswith(text.rstrip())
        assert tomllib.loads(removed) == tomllib.loads(text)


def test_toml_value_under_an_event_is_refused() -> None:
    for text in ("hooks = 1", "[hooks]\nStop = []", "[hooks.Stop]\na = 1"):
        with pytest.raises(CannotEdit):
            TomlHooks().added(text, hooks_for("codex", BEGIN))


@pytest.mark.parametrize(
    "command",
    [
        "lithos checkpoint --hook --client codex",
        f"{BEGIN} brief --hook --client codex",
        f"{BEGIN} brief --hook --client cursor --event Stop",
        f"{BEGIN} brief --hook --client codex --event Stop; rm x",
        f"{BEGIN} search --hook --client codex --event Stop",
        f"echo {BEGIN} brief --hook --client codex --event Stop",
        f"{guarded(('/opt/lithos',), ('--data-dir', '/other'))} brief --hook --client codex --event Stop",
        "x" * 20_000,
    ],
)
def test_hook_of_a_person_is_not_one_of_lithos(command: str) -> None:
    """Behaviour 313."""
    is_ours = is_hook_of("codex", OPTIONS)
    assert not is_ours({"command": command})
    assert not any(map(is_ours, (command, None, 7, {}, {"command": 7}, [])))


@pytest.mark.parametrize("program", ["/opt/lithos", "/my programs/lithos", "/it's/lithos"])
def test_hooks_of_each_installation_are_recognised(program: str) -> None:
    for more in ("", " --agent ann", " --agent 'ann b'"):
        for client in SPELLINGS:
            for entries in hooks_for(client, guarded((program,), OPTIONS), more).values():
                for entry in entries:
                    assert all(map(is_hook_of(client, OPTIONS), entry.get("hooks", [entry])))
