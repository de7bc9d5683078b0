"""Warnings about secrets that agents write, and refusals with `storage.secrets: refuse` (behaviour 422)."""

from __future__ import annotations

import random
import string
from pathlib import Path
from typing import Any

import pytest

from lithos.notes.settings import AgentsConfig
from tests.servers import serving

RANDOM = random.Random(422)


def made_key() -> str:
    """Return a made-up key, put together here so that no scanner of repositories reports this file."""
    return "gh" + "p_" + "".join(RANDOM.choices(string.ascii_letters + string.digits, k=36))


def suspected(answer: dict[str, Any]) -> list[str]:
    """Return the warnings about secrets in an answer."""
    return [each for each in answer.get("warnings", ()) if each.startswith("secret_suspected")]


def places_of(value: str, folder: Path) -> list[Path]:
    """Return the files below a folder that contain a value."""
    return [path for path in folder.rglob("*") if path.is_file() and value.encode() in path.read_bytes()]


async def test_write_warns_with_kind_and_line_but_not_value(tmp_path: Path) -> None:
    """Behaviour 422: the answer names the kind and the line, and the note is stored."""
    key = made_key()
    async with serving(tmp_path) as lithos:
        content = f"First line.\n\nexport GITHUB_TOKEN={key}\n"
        answer = await lithos.call("lithos_write", title="Deploy", content=content, agent="ann")
        (warning,) = suspected(answer)
        line = int(warning.split("line ")[1].split()[0])
        file = tmp_path.rglob(Path(answer["path"]).name)
        assert key in next(file).read_text().splitlines()[line - 1]
        assert "github token" in warning
        assert key not in str(answer)


async def test_mention_of_a_name_does_not_warn(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        content = "Set GITHUB_TOKEN=$GITHUB_TOKEN and password: <yours>, see `secrets.API_KEY`.\n"
        answer = await lithos.call("lithos_write", title="Deploy", content=content, agent="ann")
        assert not answer["warnings"]


async def test_edit_and_append_warn_only_about_added_secrets(tmp_path: Path) -> None:
    """Behaviour 422: a secret that the note had before the edit is not reported again."""
    old, new = made_key(), made_key()
    async with serving(tmp_path) as lithos:
        made = await lithos.call("lithos_write", title="Keys", content=f"# A\n\nold {old}\n", agent="ann")
        edit = {"id": made["id"], "agent": "ann"}
        again = await lithos.call("lithos_note_edit", **edit, op="append", text=f"Moved: {old}")
        assert not suspected(again)
        added = await lithos.call("lithos_note_edit", **edit, op="append", text=f"token {new}")
        assert len(suspected(added)) == 1
        whole = await lithos.call("lithos_write", id=made["id"], content=f"both {old} {new}\n", agent="ann")
        assert not suspected(whole)
        value = await lithos.call(
            "lithos_note_update", id=made["id"], agent="ann", metadata={"k": made_key()}
        )
        assert len(suspected(value)) == 1


async def test_value_filled_into_an_existing_name_warns(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        text = "db_password: TODO_LATER\n"
        made = await lithos.call("lithos_write", title="Db", content=text, agent="ann")
        assert not suspected(made)
        edit = {"id": made["id"], "agent": "ann", "op": "find_replace"}
        done = await lithos.call("lithos_note_edit", **edit, find="TODO_LATER", text="Xk9!" + "qT2vLm8z")
        assert "password" in suspected(done)[0]


async def test_refused_secret_is_stored_nowhere(tmp_path: Path) -> None:
    """Behaviours 329 and 422: no store, index, journal or log has the value."""
    key = made_key()
    async with serving(tmp_path, storage={"secrets": "refuse"}) as lithos:
        made = await lithos.call("lithos_write", title="Plain", content="Nothing.\n", agent="ann")
        calls: list[tuple[str, dict[str, Any]]] = [
            ("lithos_write", {"title": "Deploy", "content": f"token {key}"}),
            ("lithos_write", {"id": made["id"], "content": f"token {key}", "request_id": "once-1"}),
            ("lithos_note_edit", {"id": made["id"], "op": "append", "text": f"token {key}"}),
            ("lithos_note_update", {"id": made["id"], "metadata": {"k": key}}),
            (
                "lithos_task_create",
                {"title": "Deploy", "description": f"token {key}", "request_id": "once-2"},
            ),
        ]
        for name, arguments in calls:
            answer = await lithos.call(name, **arguments, agent="ann")
            assert answer["code"] == "invalid_input", (name, answer)
            assert "github token" in answer["message"]
            assert key not in str(answer)
        assert (await lithos.call("lithos_read", id=made["id"]))["version"] == made["version"]
    assert not places_of(key, tmp_path)


async def test_proposal_with_a_secret_is_refused(tmp_path: Path) -> None:
    key = made_key()
    scopes = {"ann": {"propose": ("**",)}}
    async with serving(tmp_path, storage={"secrets": "refuse"}, agents=AgentsConfig(agents=scopes)) as lithos:
        answer = await lithos.call("lithos_write", title="Deploy", content=f"token {key}", agent="ann")
        assert answer["code"] == "invalid_input", answer
    assert not places_of(key, tmp_path)


@pytest.mark.parametrize("mode", ["off", "warn"])
async def test_setting_decides_whether_to_warn(tmp_path: Path, mode: str) -> None:
    async with serving(tmp_path, storage={"secrets": mode}) as lithos:
        answer = await lithos.call("lithos_write", title="A", content=f"token {made_key()}", agent="ann")
        assert bool(suspected(answer)) == (mode == "warn")


async def test_task_and_finding_warn_with_kind_and_line(tmp_path: Path) -> None:
    """Behaviour 422: the answer of a call that stores text outside notes has the warning too."""
    key, password = made_key(), "Xk9!" + "qT2vLm8z"
    async with serving(tmp_path) as lithos:
        task = await lithos.call("lithos_task_create", title="Deploy", agent="ann", description=f"a\nb {key}")
        assert "line 2 of description looks like a github token" in suspected(task)[0]
        finding = {"task_id": task["task_id"], "agent": "ann"}
        plain = await lithos.call("lithos_finding_post", **finding, summary="The token is in the vault.")
        assert not suspected(plain)
        posted = await lithos.call("lithos_finding_post", **finding, summary=f"The token is {key}.")
        assert suspected(posted)
        assert key not in str(posted)
        row = await lithos.call("lithos_task_update", **finding, metadata={"password": password})
        assert "password" in suspected(row)[0]


async def test_compact_answer_keeps_the_warning(tmp_path: Path) -> None:
    async with serving(tmp_path, server={"answers": "compact"}) as lithos:
        note = await lithos.call("lithos_write", title="A", content=f"token {made_key()}", agent="ann")
        task = await lithos.call(
            "lithos_task_create", title="A", description=f"token {made_key()}", agent="ann"
        )
        assert suspected(note)
        assert suspected(task)
