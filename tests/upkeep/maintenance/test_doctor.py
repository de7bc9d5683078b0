"""`lithos doctor` on data directories that contain one error each."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest
import trio
from attrs import define, field, frozen

import lithos.upkeep.maintenance.doctor
from lithos.imports.checks import check_upstream
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import OwnerLock, OwnerRecord
from lithos.kernel.parts import utc_now
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import DOCTOR, checks_of
from lithos.memory.model.memory import NodeStats
from lithos.memory.rows.stats import StatsStore
from lithos.notes.watching.notifications import Probe
from lithos.search.embedding.transformer_models import MULTILINGUAL, TransformerModel
from lithos.server.settings import ServerConfig
from lithos.upkeep.checks import checks_storage
from lithos.upkeep.checks.checks import run_check
from lithos.upkeep.checks.checks_notes import check_vault_files
from lithos.upkeep.files.probes import Space
from lithos.upkeep.maintenance.doctor import make_patient
from tests.app.program import Program, make_program
from tests.e2e.process import running_lithos
from tests.e2e.vault import snapshot
from tests.servers import load_once, put_note, serving

HEALTHY = [
    "configuration", "data directory", "disk space", "layout",
    *(["tokens"] if find_spec("lithos.access") else []), "owner", "port", "databases",
    "notes", "protection", "displaced texts", "vanished files", "embedder", "indexes", "watcher", "clock",
    "broken", "duplicated", "conflict copies", "conflict markers",
]  # fmt: skip
NOTES = 24
WATCH_MODE = "LITHOS_INDEX__WATCH_MODE"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory that a server used and closed properly."""
    data = tmp_path_factory.mktemp("sound")
    for number in range(NOTES):
        put_note(
            data, f"notes/n{number:02}.md", f"# Note {number}\n\nAbout [[n{(number + 1) % NOTES:02}]].\n"
        )

    async def serve() -> None:
        async with serving(data) as lithos:
            first, second = await lithos.create("One more"), await lithos.create("Another")
            edge = {
                "from_id": first,
                "to_id": second,
                "type": "supports",
                "weight": 0.5,
                "namespace": "default",
            }
            await lithos.call("lithos_edge_upsert", **edge)

    trio.run(serve)
    stats = StatsStore.open(data / ".lithos" / "stats.db", utc_now())
    with stats.transaction():
        stats.writing.nodes.put([NodeStats(node_id="some note")])
    stats.close()
    assert (data / ".lithos" / "edges.db").exists()
    return data


program = pytest.fixture(make_program)


@define
class Ward:
    """One data directory that a test breaks, and the resources to release afterwards."""

    program: Program
    monkeypatch: pytest.MonkeyPatch
    closing: list[Callable[[], Any]] = field(factory=list)

    @property
    def data(self) -> Path:
        return self.program.data

    @property
    def private(self) -> Path:
        return self.data / ".lithos"

    def own(self, url: str | None) -> None:
        """Lock the directory like a server that reports this address."""
        lock = OwnerLock(self.private / "lock")
        lock.acquire("2026-01-01T00:00:00+00:00")
        self.closing.append(lock.release)
        lock.publish(OwnerRecord(os.getpid(), "somewhere", url, "2026-01-01T00:00:00+00:00", "s3cret"))

    def listen(self) -> int:
        """Open a port that never answers. Return the port number."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.closing.append(listener.close)
        return int(listener.getsockname()[1])


@pytest.fixture
def ward(program: Program, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ward]:
    for name in list(os.environ):
        if name.startswith("LITHOS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LITHOS_PORT", "0")  # The server may use any free port.
    monkeypatch.setenv(WATCH_MODE, "poll")  # A watch probe would take a third of a second.
    monkeypatch.setattr(lithos.upkeep.maintenance.doctor, "load_embedder", load_once)
    monkeypatch.setattr(lithos.upkeep.maintenance.doctor, "_ANSWER_WAIT", 0.3)
    monkeypatch.setattr(lithos.upkeep.maintenance.doctor, "_ADDRESS_WAIT", 0.2)
    program.data = tmp_path / "data"
    shutil.copytree(sound, program.data)
    made = Ward(program, monkeypatch)
    yield made
    for close in made.closing:
        close()


@frozen
class Fault:
    """An error in a directory: how the test creates it, which check must report it, and in which words."""

    check: str
    status: str
    cause: str
    way_out: str
    seed: Callable[[Ward], Any]


def damage(ward: Ward, name: str) -> None:
    """Overwrite the second page. Only a full check can then find the damage."""
    with (ward.private / name).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)


def configure(text: str) -> Callable[[Ward], Any]:
    return lambda ward: (ward.data / "config.yaml").write_text(text)


def ask_for_the_accurate_tier(ward: Ward) -> None:
    ward.monkeypatch.setenv("LITHOS_SEARCH__TIER", "accurate")
    ward.monkeypatch.setitem(sys.modules, "onnxruntime", None)


def forbid_writing(ward: Ward) -> None:
    real = os.open

    def refuse(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_CREAT and str(path).startswith(str(ward.data)):
            raise OSError(errno.EROFS, "Read-only file system")
        return real(path, flags, *more, **named)

    ward.monkeypatch.setattr(os, "open", refuse)


def block_private_folder(ward: Ward) -> None:
    ward.private.rename(ward.data / "elsewhere")
    ward.private.write_text("a file")


def leave_lock_of_the_dead(ward: Ward) -> int:
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], stdout=-1, check=True)
    record = {"pid": int(child.stdout), "host": socket.gethostname(), "url": "http://127.0.0.1:1"}
    (ward.private / "lock").write_text(json.dumps(record | {"started_at": "2026-01-01T00:00:00+00:00"}))
    return int(child.stdout)


def own_and_hang(ward: Ward) -> None:
    ward.own(f"http://127.0.0.1:{ward.listen()}")


def damage_fulltext(ward: Ward) -> None:
    segment = next((ward.data / ".tantivy").glob("*.store"))
    segment.write_bytes(b"\0" * segment.stat().st_size)


def take_vectors_of_another_model(ward: Ward) -> None:
    manifest = ward.data / ".usearch" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["embedder"]["name"] = "older-model"
    manifest.write_text(json.dumps(content))


def lose_most_notes(ward: Ward) -> None:
    for number in range(20):
        (ward.data / "knowledge" / "notes" / f"n{number:02}.md").unlink()


def lose_the_folder(ward: Ward) -> None:
    (ward.data / "knowledge").rename(ward.data / "unmounted")


def copy_with_its_id(ward: Ward) -> None:
    shutil.copy(ward.data / "knowledge" / "one-more.md", ward.data / "knowledge" / "second.md")


def age_the_clock(ward: Ward) -> None:
    with sqlite3.connect(ward.private / "coordination.db") as database:
        database.execute("UPDATE events SET timestamp='2999-01-01T00:00:00.000000+00:00'")
    database.close()


def take_the_port(ward: Ward) -> None:
    ward.monkeypatch.setenv("LITHOS_PORT", str(ward.listen()))


def take_the_port_for_http(ward: Ward) -> None:
    take_the_port(ward)
    ward.monkeypatch.setenv("LITHOS_TRANSPORT", "http")


def be_of_tomorrow(ward: Ward) -> None:
    registry = ward.private / "migrations" / "registry.json"
    registry.write_text(json.dumps({"current_version": 99, "applied": []}))


def notice_nothing(ward: Ward) -> None:
    ward.monkeypatch.delenv(WATCH_MODE)

    async def is_noticed(_: Probe) -> bool:
        await trio.lowlevel.checkpoint()
        return False

    ward.monkeypatch.setattr(Probe, "is_noticed", is_noticed)


def forbid_the_probe(ward: Ward) -> None:
    ward.monkeypatch.delenv(WATCH_MODE)

    def refuse(_: Probe) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    ward.monkeypatch.setattr(Probe, "_write", refuse)


def fill_the_disk(ward: Ward) -> None:
    ward.monkeypatch.setattr(checks_storage, "free_space", lambda _: Space(1024, 5_000_000))


def use_up_inodes(ward: Ward) -> None:
    ward.monkeypatch.setattr(checks_storage, "free_space", lambda _: Space(10**12, 3))


def fail_to_read(ward: Ward) -> None:
    """Raise an error like SQLite on a full disk, where it cannot create a `-shm` file."""
    real = checks_storage.check_integrity

    def read(path: Path, *, is_live: bool) -> str | None:
        if path.name == "coordination.db":
            raise apsw.IOError("disk I/O error")
        return real(path, is_live=is_live)

    ward.monkeypatch.setattr(checks_storage, "check_integrity", read)


def set_database_aside(ward: Ward) -> None:
    (ward.private / "edges.db.corrupt-20260101T000000Z").write_bytes(b"?")


FAULTS = {
    "coordination database damaged": Fault(
        "databases", "fail", "coordination.db is damaged", "lithos restore",
        lambda ward: damage(ward, "coordination.db"),
    ),
    "coordination database no database": Fault(
        "databases", "fail", "coordination.db is damaged", "move it away",
        lambda ward: (ward.private / "coordination.db").write_bytes(b"what is this" * 100),
    ),
    "coordination database emptied": Fault(
        "databases", "warn", "coordination.db is empty", "Restore the database from a backup",
        lambda ward: (ward.private / "coordination.db").write_bytes(b""),
    ),
    "coordination database unreadable on a full disk": Fault(
        "databases", "fail", "coordination.db cannot be read now (disk I/O error)", "do not replace",
        fail_to_read,
    ),
    "edges database damaged": Fault(
        "databases", "fail", "edges.db is damaged", "Restore the file from a backup",
        lambda ward: damage(ward, "edges.db"),
    ),
    "stats database damaged": Fault(
        "databases", "fail", "stats.db is damaged", "bytes intact", lambda ward: damage(ward, "stats.db")
    ),
    "manifest damaged": Fault(
        "databases", "warn", "manifest.db is damaged", "can be rebuilt",
        lambda ward: damage(ward, "manifest.db"),
    ),
    "database set aside": Fault(
        "databases", "warn", "edges.db.corrupt-20260101T000000Z aside", "backup", set_database_aside
    ),
    "disk mounted read-only": Fault(
        "data directory", "fail", "Read-only file system", "mount it for writing", forbid_writing
    ),
    "file in place of a folder": Fault(
        "data directory", "fail", ".lithos cannot be written", "Move the file away", block_private_folder
    ),
    "disk full": Fault("disk space", "fail", "Only 1,024 bytes", "Free some space", fill_the_disk),
    "no inodes left": Fault("disk space", "fail", "Only 3 inodes", "Free some space", use_up_inodes),
    "newer layout": Fault(
        "layout", "fail", "newer Lithos: its layout is 99", "Install that Lithos version", be_of_tomorrow
    ),
    "layout unreadable": Fault(
        "layout", "warn", "registry.json is not a valid layout file", "backup",
        lambda ward: (ward.private / "migrations" / "registry.json").write_text("{"),
    ),
    "owner hangs": Fault(
        "owner", "fail", "does not answer: ", f"stop process {os.getpid()} on somewhere", own_and_hang
    ),
    "owner refuses connections": Fault(
        "owner", "fail", "does not answer", "start the server again",
        lambda ward: ward.own("http://127.0.0.1:1"),
    ),
    "owner without address": Fault(
        "owner", "warn", f"process {os.getpid()}", "run doctor again", lambda ward: ward.own(None)
    ),
    "port taken": Fault("port", "warn", f"process {os.getpid()} (", "choose another port", take_the_port),
    "port taken that is to be served": Fault(
        "port", "fail", "in use by another program", "LITHOS_PORT", take_the_port_for_http
    ),
    "unknown key": Fault(
        "configuration", "warn", "server.prot", "did you mean server.port", configure("server: {prot: 1}\n")
    ),
    "wrong value": Fault(
        "configuration", "fail", "search.max_results: 'many'", "whole number",
        configure("search: {max_results: many}\n"),
    ),
    "configuration no YAML": Fault(
        "configuration", "fail", "config.yaml is not valid YAML", "Correct the configuration",
        configure("server: [\n"),
    ),
    "open bind without token": Fault(
        "configuration", "warn", "listens on 0.0.0.0 without a token", "LITHOS_AUTH_TOKEN",
        configure("server: {host: 0.0.0.0}\n"),
    ),
    "file unreadable": Fault(
        "broken", "warn", "bad.md: the file is binary", "lithos validate",
        lambda ward: put_note(ward.data, "bad.md", b"\0"),
    ),
    "folder of notes gone": Fault(
        "notes", "fail", "knowledge has vanished", "disk is mounted", lose_the_folder
    ),
    "two files of one id": Fault(
        "duplicated", "warn", "second.md", "lithos validate --fix", copy_with_its_id
    ),
    "most files vanished": Fault(
        "vanished files", "fail", "files of 20 notes have vanished (notes/n00.md", "--accept-vanished",
        lose_most_notes,
    ),
    "model missing": Fault(
        "embedder", "fail", "the directory '/nowhere", "set search.embedding_model to 'builtin'",
        configure("search: {embedding_model: /nowhere/model}\n"),
    ),
    "model not downloaded": Fault(
        "embedder", "warn", "'nobody/knows-it' is not on this machine", "downloads the model",
        configure("search: {embedding_model: nobody/knows-it}\n"),
    ),
    "accurate tier asked for and not there": Fault(
        "embedder", "warn", "onnxruntime is not installed", "pip install 'lithos-server[accurate]'",
        ask_for_the_accurate_tier,
    ),
    "full-text index damaged": Fault(
        "indexes", "fail", "full-text index is damaged (the index is damaged", "lithos reconcile",
        damage_fulltext,
    ),
    "full-text index of another format": Fault(
        "indexes", "warn", "full-text index has another format", "lithos reconcile",
        lambda ward: (ward.data / ".tantivy" / ".schema_version").write_text("older"),
    ),
    "vectors of another model": Fault(
        "indexes", "warn", "belong to 'older-model'", "lithos reconcile", take_vectors_of_another_model
    ),
    "notes changed while nothing ran": Fault(
        "indexes", "warn", "does not match the notes (1 missing", "start the server",
        lambda ward: put_note(ward.data, "new.md", "New.\n"),
    ),
    "notifications do not work": Fault(
        "watcher", "warn", "does not report changes", "every second", notice_nothing
    ),
    "probe not written": Fault("watcher", "warn", "Permission denied", "every second", forbid_the_probe),
    "clock behind": Fault("clock", "fail", "newest event is from 2999-01-01", "Set the clock", age_the_clock),
    "file of the future": Fault(
        "clock", "warn", "1 note files are dated in the future: notes/n00.md", "touch",
        lambda ward: os.utime(ward.data / "knowledge" / "notes" / "n00.md", (4e9, 4e9)),
    ),
}  # fmt: skip
#: Words in irreversible commands. Doctor must never recommend such commands.
DESTRUCTIVE = ("delete", "rm ", "wipe", "erase", "drop")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.needs("access")) if name == "open bind without token" else name
        for name in FAULTS
    ],
)
def test_doctor_names_the_cause_and_a_solution(ward: Ward, name: str) -> None:
    """Behaviour 210: the checks do not change any file, not even a broken file."""
    fault = FAULTS[name]
    fault.seed(ward)
    before = snapshot(ward.data)
    done = ward.program.run("doctor", "--json")
    assert snapshot(ward.data) == before
    results = {each["name"]: each for each in done.answer["checks"]}
    assert list(results) == HEALTHY
    assert results[fault.check]["status"] == fault.status, results
    assert fault.cause in results[fault.check]["message"]
    assert fault.way_out.lower() in results[fault.check]["message"].lower()
    is_failed = any(each["status"] == "fail" for each in results.values())
    assert (done.answer["status"], done.code) == (("fail", 1) if is_failed else ("warn", 0))
    assert not any(word in each["message"].lower() for each in results.values() for word in DESTRUCTIVE)
    assert "s3cret" not in done.out
    assert done.err == ""


def test_healthy_directory_has_only_ok_lines(ward: Ward) -> None:
    ward.monkeypatch.delenv(WATCH_MODE)
    before = snapshot(ward.data)
    done = ward.program.run("doctor")
    lines = done.out.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [f"ok    {name}" for name in HEALTHY]
    assert (lines[-1], done.code, done.err) == (f"{len(HEALTHY)} ok, 0 warn, 0 fail", 0, "")
    assert snapshot(ward.data) == before


@pytest.mark.parametrize(
    ("tier", "told"),
    [
        (
            "auto",
            "Semantic search would find more with the accurate tier: pip install 'lithos-server[acc",
        ),
        ("static", "The accurate tier is switched off"),
    ],
)
def test_missing_accurate_model_is_a_hint_but_not_an_error(ward: Ward, tier: str, told: str) -> None:
    ward.monkeypatch.setenv("LITHOS_SEARCH__TIER", tier)
    ward.monkeypatch.setitem(sys.modules, "onnxruntime", None)
    done = ward.program.run("doctor", "--json")
    (found,) = (each for each in done.answer["checks"] if each["name"] == "embedder")
    assert (found["status"], told in found["message"]) == ("ok", True), found


def add_german_notes(ward: Ward) -> None:
    for number in range(NOTES):
        put_note(ward.data, f"de/{number}.md", f"# Notiz {number}\n\nDer Zug ist nicht pünktlich.\n")


def embedder_finding(ward: Ward) -> dict[str, Any]:
    ward.monkeypatch.setenv("LITHOS_SEARCH__TIER", "auto")
    done = ward.program.run("doctor", "--json")
    (found,) = (each for each in done.answer["checks"] if each["name"] == "embedder")
    return dict(found)


@pytest.mark.multilingual
def test_doctor_names_the_model_and_the_reason(ward: Ward) -> None:
    """behaviour 420"""
    told = embedder_finding(ward)
    assert told["status"] == "ok"
    assert "Its model is english: 0% of the notes are not English." in told["message"]
    add_german_notes(ward)
    told = embedder_finding(ward)
    assert told["status"] == "ok"
    assert "Its model is multilingual: " in told["message"]


@pytest.mark.parametrize("runtime", [True, False])
def test_doctor_names_the_command_for_a_vault_in_another_language(ward: Ward, runtime: bool) -> None:
    """behaviour 420: one command installs the model, with onnxruntime if that is missing too."""
    add_german_notes(ward)
    real = TransformerModel.is_installed.fget  # type: ignore[attr-defined]
    ward.monkeypatch.setattr(
        TransformerModel, "is_installed", property(lambda model: model is not MULTILINGUAL and real(model))
    )
    if not runtime:
        ward.monkeypatch.setitem(sys.modules, "onnxruntime", None)
    told = embedder_finding(ward)
    assert told["status"] == "ok"
    assert MULTILINGUAL.install in told["message"]


def test_lock_of_a_dead_owner_is_not_an_error(ward: Ward) -> None:
    pid = leave_lock_of_the_dead(ward)
    done = ward.program.run("doctor")
    assert f"Process {pid} left its lock file, which has no effect." in done.out
    assert (done.code, done.out.count("\nwarn"), done.out.count("\nfail")) == (0, 0, 0)


def test_notes_that_are_not_served_are_not_an_error(ward: Ward) -> None:
    for name in (".lithos", ".tantivy", ".usearch"):
        shutil.rmtree(ward.data / name)
    assert ward.program.run("doctor", "--json").answer["status"] == "ok"
    assert [path.name for path in ward.data.iterdir()] == ["knowledge"]


@pytest.mark.parametrize("kind", ["absent", "file"])
def test_missing_data_directory_is_not_created(ward: Ward, kind: str) -> None:
    ward.program.data = ward.data / kind
    if kind == "file":
        ward.program.data.write_text("")
    done = ward.program.run("doctor", "--json")
    told = {each["name"]: each for each in done.answer["checks"]}
    assert (told["data directory"]["status"], done.code) == ("fail", 1)
    assert "--data-dir" in told["data directory"]["message"]
    assert not ward.program.data.is_dir()


def test_doctor_names_the_directory_when_configuration_is_unusable(ward: Ward) -> None:
    """Valid settings still apply, so doctor reads the notes in the configured folder."""
    (ward.data / "knowledge").rename(ward.data / "texts")
    configure("storage: {knowledge_subdir: texts}\nserver: {port: high, auth_token: 'a b'}\n")(ward)
    ward.monkeypatch.setenv("LITHOS_LOG_LEVEL", "loud")
    told = {each["name"]: each for each in ward.program.run("doctor", "--json").answer["checks"]}
    assert [each["status"] for each in told["configuration"]["findings"][:3]] == ["fail"] * 3
    assert "'a b'" not in told["configuration"]["message"]
    assert told["notes"]["findings"][0]["cause"] == f"{NOTES + 2} notes can be read."


def test_crash_of_one_check_does_not_stop_other_checks(ward: Ward) -> None:
    def crash(_: Path) -> Any:
        raise RuntimeError("a bug")

    ward.monkeypatch.setattr(checks_storage, "read_layout_version", crash)
    done = ward.program.run("doctor", "--json")
    told = {each["name"]: each for each in done.answer["checks"]}
    assert "RuntimeError: a bug" in told.pop("layout")["message"]
    assert {each["status"] for each in told.values()} == {"ok"}
    assert (len(told), done.code) == (len(HEALTHY) - 1, 1)


async def test_hanging_check_is_reported_and_abandoned(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = threading.Event()
    monkeypatch.setattr(checks_storage, "free_space", lambda _: hanging.wait())
    shutil.copytree(sound, tmp_path / "data")
    patient = make_patient(Config(storage=StorageConfig(data_dir=tmp_path / "data")))
    (space,) = [each for each in checks_of(DOCTOR) if each.name == "disk space"]
    try:
        result = await run_check(space, patient, 0.05)
        assert (result.status, result.findings[0].cause[:27]) == ("fail", "This check did not finish w")
    finally:
        hanging.set()


@pytest.mark.slow
def test_all_checks_pass_while_a_healthy_server_runs(ward: Ward) -> None:
    """The server has a token. A wrong token is reported."""
    ward.monkeypatch.delenv(WATCH_MODE)
    with running_lithos(ward.data, env={"LITHOS_AUTH_TOKEN": "right"}) as server:
        ward.monkeypatch.setenv("LITHOS_AUTH_TOKEN", "right")
        ward.monkeypatch.setattr(lithos.upkeep.maintenance.doctor, "_ANSWER_WAIT", 5.0)
        answer = ward.program.run("doctor", "--json").answer
        assert answer["status"] == "ok", answer
        told = {each["name"]: each["message"] for each in answer["checks"]}
        assert f"In use by process {server.process.pid} " in told["owner"]
        ward.monkeypatch.setenv("LITHOS_PORT", str(server.address[1]))
        told = {each["name"]: each for each in ward.program.run("doctor", "--json").answer["checks"]}
        assert "is used by the owner itself" in told["port"]["message"]
        ward.monkeypatch.setenv("LITHOS_AUTH_TOKEN", "wrong")
        told = {each["name"]: each for each in ward.program.run("doctor", "--json").answer["checks"]}
        assert told["owner"]["status"] == "fail"
        assert "LITHOS_AUTH_TOKEN" in told["owner"]["message"]
        assert "stop process" not in told["owner"]["message"]


def test_upstream_directory_is_recognised_with_its_importable_data(ward: Ward) -> None:
    """docs/spec/integration.md §1.1"""
    assert "upstream" not in [
        check["name"] for check in ward.program.run("doctor", "--json").answer["checks"]
    ]
    (ward.data / ".chroma").mkdir()
    (ward.data / "config.yaml").write_text(
        "storage:\n  knowledge_dir: knowledge\ncoordination:\n  claim_ttl_minutes: 30\n"
    )
    before = snapshot(ward.data)
    done = ward.program.run("doctor")
    checks = ward.program.run("doctor", "--json").answer["checks"]
    (found,) = [check["findings"] for check in checks if check["name"] == "upstream"]
    line, advice = (finding["cause"] for finding in found)
    assert "Upstream Lithos used this directory" in done.out
    assert ".chroma, storage.knowledge_dir, coordination.claim_ttl_minutes" in line
    assert "1 edges between notes" in line
    assert "no data is lost or rewritten" in line
    assert "server.write_outcomes" in advice
    assert (done.code, done.out.count("\nfail")) == (0, 0)
    assert snapshot(ward.data) == before
    with (ward.data / "config.yaml").open("a") as config:
        config.write("server:\n  write_outcomes: status\n")
    assert "server.write_outcomes" not in ward.program.run("doctor").out


def test_second_coordination_database_is_reported(ward: Ward) -> None:
    shutil.copyfile(ward.private / "coordination.db", ward.data / "coordination.db")
    out = ward.program.run("doctor").out
    assert "Lithos only uses the file in .lithos" in out
    assert "swap the files" in out


def test_tasks_in_an_unserved_upstream_directory_are_counted(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "coordination.db")
    database.execute("CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT, completed_at TEXT, theirs TEXT)")
    database.execute("INSERT INTO tasks VALUES('t','T',NULL,'x')")
    database.commit()
    database.close()
    config = Config(storage=StorageConfig(data_dir=tmp_path), server=ServerConfig(write_outcomes="status"))
    told = [finding.cause for finding in check_upstream(make_patient(config))]
    assert len(told) == 1
    assert "1 tasks" in told[0]
    assert [path.name for path in tmp_path.iterdir()] == ["coordination.db"]


def test_doctor_shows_how_writes_affect_the_files_of_a_vault(tmp_path: Path) -> None:
    """Issue 25, numbers 7 and 9: doctor shows birth times, and where replaced files are kept.

    Doctor never writes to the vault for this check.
    """
    vault, data = tmp_path / "vault", tmp_path / "data"
    vault.mkdir()
    (data / ".lithos").mkdir(parents=True)

    def told(vault: Path, data: Path) -> str:
        (found,) = check_vault_files(make_patient(Config(storage=StorageConfig(data_dir=data, vault=vault))))
        return str(found)

    assert "leaves the vault at once" in told(vault, data)
    assert "the creation time" in told(vault, data)
    with TemporaryDirectory(dir="/var/tmp") as other:
        (Path(other) / ".lithos").mkdir()
        if Path(other).stat().st_dev != vault.stat().st_dev:
            assert ".swap" in told(vault, Path(other))
    assert "could not be checked" in told(tmp_path / "missing", data)
    assert list(vault.iterdir()) == list((data / ".lithos").iterdir()) == []
