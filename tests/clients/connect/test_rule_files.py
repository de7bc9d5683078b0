"""Rules in a file of a client: every order of changes keeps what other programs and people wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.clients.connect import rule_files
from lithos.clients.connect.files import CannotUse, ChangedMeanwhile, ConfigFile, replace_config
from lithos.clients.connect.formats import JsonFormat, TomlFormat
from lithos.clients.connect.rule_files import RulePlace, RuleRecord, allow, disallow

pytestmark = pytest.mark.needs("clients")

LIST = ("", "lithos:a"), ("", "lithos:b"), ("", "lithos:c")
KEYED = ("a", {"default": "allow"}), ("b", {"default": "allow"})
#: A path that is never read, for the functions on texts.
NOWHERE = Path("/nowhere/settings.json")
ITEMS = st.sampled_from(["lithos:a", "lithos:b", "other", 1.5, None, {"x": [1]}])
OTHERS = st.dictionaries(st.sampled_from(["model", "größe", "hooks"]), st.integers() | ITEMS, max_size=3)


def list_in(path: Path) -> RulePlace:
    return RulePlace(path, JsonFormat(("permissions",)), "allow")


@given(
    OTHERS,
    st.none() | st.lists(ITEMS, max_size=4),
    st.lists(st.sampled_from(LIST), unique=True),
    st.sampled_from([None, 2, 4, "\t"]),
    st.booleans(),
)
def test_rules_in_a_list_are_added_and_taken_out_exactly(
    others: dict[str, Any], held: list[Any] | None, rules: list[Any], indent: Any, has_mark: bool
) -> None:
    """behaviours 309 and 317: also if another program changes the file in between."""
    tree = {**others, **({} if held is None else {"permissions": {"allow": held, "deny": ["x"]}})}
    mark = b"\xef\xbb\xbf" if has_mark else b""
    data = mark + json.dumps(tree, indent=indent, ensure_ascii=False).encode()
    place = list_in(NOWHERE)
    new, added = place.put(data, [place.with_rules(rules)])
    record = RuleRecord(added, data.decode())
    assert place.without(new, RuleRecord.read(record.data)) == data
    expected = [*(held or []), *(rule for _, rule in rules if rule not in (held or []))]
    with_rules = json.loads((new or b"").decode("utf-8-sig"))
    if rules:
        assert with_rules["permissions"]["allow"] == expected
    with_rules["later"] = True
    changed = place.without(mark + json.dumps(with_rules).encode(), record)
    assert changed is not None
    assert json.loads(changed.decode("utf-8-sig")) == {**tree, "later": True}


@pytest.mark.parametrize(
    "text", ["", "a = 1\n", "# mine\r\n[m.other]\r\nx = 1\r\n", "[m.lithos]\ncommand = 'x'"]
)
def test_rules_in_toml_change_no_other_byte(text: str) -> None:
    place = RulePlace(NOWHERE, TomlFormat(("m", "lithos", "tools")))
    data = text.encode()
    new, added = place.put(data, [place.with_rules(KEYED)])
    assert new is not None
    assert new.startswith(data)
    assert place.without(new, RuleRecord(added, text)) == data
    if not text.endswith("\n"):
        return  # The line breaks before the rules may stay if the file was changed meanwhile.
    later = new + b"# later\n[z]\n"
    assert place.without(later, RuleRecord(added, text)) == data + b"# later\n[z]\n"


def test_persons_value_for_a_key_is_neither_replaced_nor_taken_out() -> None:
    place = RulePlace(NOWHERE, JsonFormat(("tools",)))
    data = b'{"tools": {"a": {"default": "deny"}}}'
    new, added = place.put(data, [place.with_rules(KEYED)])
    assert json.loads(new or b"") == {"tools": {"a": {"default": "deny"}, "b": {"default": "allow"}}}
    assert [key for part in added for key, _ in part.rules] == ["b"]
    decided = b'{"tools": {"a": {"default": "deny"}, "b": {"default": "confirm"}, "c": 1}}'
    assert place.without(decided, RuleRecord(added, data.decode())) == decided


def test_interrupted_change_leaves_no_rule_without_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"permissions": {"allow": ["x"]}}')

    def killed(file: ConfigFile, data: bytes | None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rule_files, "replace_config", killed)
        with pytest.raises(KeyboardInterrupt):
            allow(list_in(path), LIST)
    assert list_in(path).read_record().rules_at(list_in(path)) == LIST
    assert disallow(list_in(path)) == LIST
    assert [each.name for each in tmp_path.iterdir()] == ["settings.json"]
    assert path.read_bytes() == b'{"permissions": {"allow": ["x"]}}'


@pytest.mark.parametrize("times", [1, 100])
def test_file_saved_by_the_client_meanwhile_is_kept(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, saved = tmp_path / "settings.json", replace_config, list[int]()
    path.write_bytes(b'{"count": 0}')

    def save_first(file: ConfigFile, data: bytes | None) -> None:
        if len(saved) < times:
            saved.append(path.write_bytes(b'{"count": %d}' % (len(saved) + 1)))
        real(file, data)

    monkeypatch.setattr(rule_files, "replace_config", save_first)
    if times == 1:
        assert allow(list_in(path), LIST)
        assert json.loads(path.read_bytes())["permissions"]["allow"] == [rule for _, rule in LIST]
        disallow(list_in(path))
    else:
        with pytest.raises((CannotUse, ChangedMeanwhile), match="changed 5 times"):
            allow(list_in(path), LIST)
    assert path.read_bytes() == b'{"count": %d}' % len(saved)
    assert [each.name for each in tmp_path.iterdir()] == ["settings.json"]


def test_deleted_file_is_not_created_again(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"model": 1}')
    allow(list_in(path), LIST)
    path.unlink()
    assert disallow(list_in(path)) == LIST
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "record", [b"", b"[]", b"{}", b'{"added": [1], "before": ""}', b'{"added": [], "before": 1}', b"\xff"]
)
def test_damaged_record_is_refused(record: bytes, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"{}")
    (tmp_path / "settings.json.lithos-rules").write_bytes(record)
    for does in (lambda: allow(list_in(path), LIST), lambda: disallow(list_in(path))):
        with pytest.raises(CannotUse, match="is damaged"):
            does()
    assert path.read_bytes() == b"{}"
