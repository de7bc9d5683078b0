"""A backup taken while agents write, restored elsewhere; and one that was tampered with."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import trio

from tests.e2e.clients import WireClient
from tests.e2e.faults import Outcome
from tests.e2e.faults.chores import Chores, Key
from tests.e2e.process import Lithos, run_lithos, running_lithos
from tests.e2e.storm import Promise, Storm

#: Acknowledged writes before the backup begins.
BEFORE = 60


def _change_a_byte(backup: Path) -> None:
    note = next((backup / "knowledge/storm").glob("*.md"))
    data = bytearray(note.read_bytes())
    data[len(data) // 2] ^= 1
    note.write_bytes(data)


def _cut_a_database(backup: Path) -> None:
    database = backup / ".lithos/coordination.db"
    database.write_bytes(database.read_bytes()[:-4096])


def _drop_a_note(backup: Path) -> None:
    next((backup / "knowledge/storm").glob("*.md")).unlink()


def _lose_the_index(backup: Path) -> None:
    (backup / "backup.json").unlink()


TAMPERINGS: tuple[Callable[[Path], None], ...] = (
    _change_a_byte,
    _cut_a_database,
    _drop_a_note,
    _lose_the_index,
)


async def backup_under_load(folder: Path) -> Outcome:
    """`lithos backup` beside 16 writers and 6 crews, then `lithos restore` to another place."""
    data, backup, elsewhere = folder / "data", folder / "backup", folder / "elsewhere"
    storm, chores = Storm(7), Chores(7)
    with running_lithos(data) as server:
        made, before, claims = await _back_up_meanwhile(server, data, backup, storm, chores)
    assert made.returncode == 0, made.stderr
    counts = json.loads(made.stdout)["counts"]
    refused = [_refuse(folder, backup, tamper) for tamper in TAMPERINGS]
    restored = run_lithos("-d", elsewhere, "--json", "restore", backup)
    assert restored.returncode == 0, restored.stderr
    assert json.loads(restored.stdout)["failures"] == []
    with running_lithos(elsewhere) as server:
        async with WireClient.open(server.address) as client:
            found = await _verify(client, elsewhere / "knowledge", storm, before)
            tasks = (await client.call("lithos_task_list", with_claims=True))["tasks"]
            created = {row["title"] for row in tasks}
            missing = {key[1] for key in claims if key[0] == "task.created"} - created
            assert not missing, f"tasks that were acknowledged before: {missing}"
            highest = max(fence for _, _, _, fence in chores.grants)
            claim = await client.call("lithos_task_create", title="After", agent="a")
            grant = await client.call("lithos_task_claim", task_id=claim["task_id"], aspect="all", agent="a")
            assert grant["fence"] > highest, "a fence that was given out after the backup"
    return Outcome(
        f"backup of {counts['files']} files after {len(before)} acknowledged notes and {claims.total()} "
        f"other changes, {storm.acknowledged.total()} writes in all; {len(refused)} tampered copies",
        f"{found} notes restored, searchable, none older than acknowledged before the backup; "
        "fences go on above all given out; each tampered copy refused, nothing touched",
    )


async def _back_up_meanwhile(
    server: Lithos, data: Path, backup: Path, storm: Storm, chores: Chores
) -> tuple[CompletedProcess[str], dict[str, int], Counter[Key]]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(storm.write_until_cancelled, server)
        for crew in range(chores.crews):
            nursery.start_soon(chores.work, server, crew, [])
        with trio.fail_after(60):
            while storm.acknowledged.total() < BEFORE or not chores.grants:
                await trio.sleep(0.02)
        before = {promise.path: promise.version for promise in storm.present if promise.pending is None}
        claims = chores.acknowledged.copy()
        made = await trio.to_thread.run_sync(partial(run_lithos, "-d", data, "--json", "backup", backup))
        nursery.cancel_scope.cancel()
    return made, before, claims


def _refuse(folder: Path, backup: Path, tamper: Callable[[Path], None]) -> str:
    copy, target = folder / tamper.__name__, folder / "target"
    shutil.copytree(backup, copy)
    tamper(copy)
    refused = run_lithos("-d", target, "restore", copy)
    assert refused.returncode == 1, refused
    assert "Traceback" not in refused.stderr
    assert not (target / "knowledge").exists()
    return refused.stderr


async def _verify(client: WireClient, folder: Path, storm: Storm, before: dict[str, int]) -> int:
    items = (await client.call("lithos_list", limit=100_000))["items"]
    versions = {item["path"]: item["version"] for item in items}
    for promise in storm.promises:
        await _verify_note(client, folder, promise, versions, before)
    return len(versions)


async def _verify_note(
    client: WireClient, folder: Path, promise: Promise, versions: dict[str, int], before: dict[str, int]
) -> None:
    version = versions.get(promise.path)
    if version is None:  # deleted during the backup, or written after it looked
        assert promise.path not in before or promise.is_deleted or promise.pending == "deleted", promise
        return
    newest = promise.pending if isinstance(promise.pending, int) else promise.version
    assert before.get(promise.path, 1) <= version <= newest, (promise, version)
    assert (folder / promise.path).read_text().endswith(f"\n\n{promise.content(version)}\n")
    found = await client.call("lithos_search", query=promise.token(version), mode="fulltext")
    assert [row["path"] for row in found["results"]] == [promise.path]
