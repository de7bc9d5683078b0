"""`lithos import` as a process: without a server, with a server, and killed (behaviours 240 and 241)."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import time
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest

from tests.e2e.imports import bring, importing, numbers
from tests.e2e.process import run_lithos, running_lithos
from tests.repeats import first_of, repeats
from tests.servers import put_note

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data" / "import"


def notes_of(data: Path) -> dict[str, str]:
    """Return the notes without values that differ between two imports, such as generated times."""
    root = data / "knowledge"
    return {
        path.relative_to(root).as_posix(): re.sub(
            r"(?m)^(created_at|updated_at): .*$", "", path.read_text(errors="replace")
        )
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix != ".swap"
    }


@pytest.mark.takes(25)
def test_vault_import_is_planned_executed_and_repeated(tmp_path: Path) -> None:
    """Behaviour 240"""
    data = tmp_path / "data"
    before = {path: path.read_bytes() for path in (DATA / "markdown").rglob("*") if path.is_file()}
    planned = bring(data, DATA / "markdown", "--dry-run")
    assert (planned["kind"], planned["dry_run"], numbers(planned)) == (
        "markdown",
        True,
        {"created": 5, "malformed": 1},
    )
    assert not data.exists()
    assert numbers(bring(data, DATA / "markdown", "--into", "old", "--agent", "ana")) == numbers(planned)
    assert numbers(bring(data, DATA / "markdown", "--into", "old")) == {"unchanged": 5, "malformed": 1}
    assert {path: path.read_bytes() for path in before} == before
    history = json.loads(run_lithos("-d", data, "--json", "history", "old/Atlas.md").stdout)
    assert [row["agent"] for row in history["versions"]] == ["ana"]
    undone = run_lithos("-d", data, "undo", "--agent", "ana", "--since", "2020-01-01T00:00Z")
    assert (undone.returncode, undone.stderr) == (0, "")
    assert list(notes_of(data)) == ["old/img/map.png"]
    shown = run_lithos("-d", data, "import", DATA / "markdown", "--into", "old")
    assert "5 deleted here" in shown.stdout
    assert "Latin.md" in shown.stdout
    assert numbers(bring(data, DATA / "markdown", "--into", "old", "--recreate")) == numbers(planned)


@pytest.mark.takes(25)
def test_running_server_imports_the_files_of_the_command(tmp_path: Path) -> None:
    """Behaviour 240: the command uses the running server. No other client may import over HTTP."""
    data = tmp_path / "data"
    (tmp_path / "damaged.jsonl").write_bytes((DATA / "damaged.jsonl").read_bytes())
    with running_lithos(data, env={"LITHOS_AUTH_TOKEN": "secret"}) as server:
        settings = {"LITHOS_AUTH_TOKEN": "secret"}
        done = run_lithos("-d", data, "--json", "import", DATA / "markdown", env=settings)
        assert (done.returncode, done.stderr) == (0, "")
        assert numbers(json.loads(done.stdout)) == {"created": 5, "malformed": 1}
        again = run_lithos("-d", data, "--json", "import", DATA / "markdown", env=settings)
        assert numbers(json.loads(again.stdout)) == {"unchanged": 5, "malformed": 1}
        lines = run_lithos("-d", data, "--json", "import", tmp_path / "damaged.jsonl", env=settings)
        assert numbers(json.loads(lines.stdout)) == {"created": 3, "duplicate": 1, "malformed": 8}
        found = run_lithos("-d", data, "--json", "search", "atlas plan", env=settings)
        assert json.loads(found.stdout)["results"][0]["path"] in ("Atlas.md", "Projects/Plan.md")
        assert (data / "knowledge/img/map.png").read_bytes() == b"PNGdata"

        def post(headers: dict[str, str]) -> int:
            connection = http.client.HTTPConnection(*server.address, timeout=60)
            body = json.dumps({"step": "begin"})
            connection.request("POST", "/import", body, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status

        bearer = {"Authorization": "Bearer secret"}
        assert post({}) == 401
        assert post(bearer) == 400
    with running_lithos(data) as server:
        assert post({}) == 403
        (data / "more.md").write_text("# More\n")
        assert run_lithos("-d", data, "import", DATA / "markdown").returncode == 0


@pytest.mark.takes(25)
def test_unusable_import_sources_are_reported_with_instructions(tmp_path: Path) -> None:
    data = tmp_path / "data"
    put_note(data, "a.md", "# A\n")
    for arguments, code, words in (
        (("nowhere",), 2, "File or folder "),
        ((DATA / "mem0.jsonl", "--from", "nonsense"), 2, "Unknown source kind"),
        ((Path(__file__),), 2, "--from: "),
        ((data / "knowledge",), 2, "need no import"),
        ((tmp_path,), 2, "imported into itself"),
        ((DATA / "markdown", "--into", "../out"), 2, "must be relative"),
        ((DATA / "mem0.jsonl", "--from", "markdown"), 1, "not a folder of Markdown"),
    ):
        done = run_lithos("-d", data, "import", *arguments)
        assert (done.returncode, done.stdout) == (code, ""), (arguments, done)
        assert words in done.stderr


NOTES = 400
KILLS = repeats("KILLS", 2)


def make_vault(folder: Path) -> None:
    random = Random(1)
    for number in range(NOTES):
        path = folder / f"part {number % 7}" / f"note {number % 150} of {number // 150}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        words = " ".join(f"word{random.randrange(500)}" for _ in range(100))
        path.write_text(f"---\ntags: [t{number % 5}]\n---\nSee [[note {number}]]. {words}\n")
        if number % 40 == 0:
            path.with_suffix(".bin").write_bytes(random.randbytes(300_000))


@pytest.mark.takes(25)
@pytest.mark.deadline(300)
@pytest.mark.parametrize("is_served", first_of([True, False], 1))
def test_import_with_repeated_kills_equals_an_uninterrupted_import(tmp_path: Path, is_served: bool) -> None:
    """Behaviour 241: kill -9 hits the import, and also the server that it writes through."""
    vault = tmp_path / "vault"
    make_vault(vault)
    killed = tmp_path / "killed"
    lags = [0.4 + 2.5 * number / KILLS for number in range(KILLS)]
    died = 0
    for number, lag in enumerate(lags):
        with (
            running_lithos(killed) if is_served else nullcontext() as server,
            importing(killed, vault) as process,
        ):
            time.sleep(lag)
            # The first kill hits the import, so early that the import cannot have ended on any machine.
            (process if server is None or number % 2 == 0 else server).kill()
            died += process.wait(60) != 0
    assert died
    last = bring(killed, vault)
    assert last["notes"]["created"] + last["notes"]["unchanged"] == NOTES
    whole = tmp_path / "whole"
    assert numbers(bring(whole, vault)) == {"created": NOTES}
    assert notes_of(killed) == notes_of(whole)
    assert numbers(bring(killed, vault)) == {"unchanged": NOTES}
    events = run_lithos("-d", killed, "--json", "events", "--no-follow", "--types", "note.created").stdout
    created = [json.loads(line)["payload"]["id"] for line in events.splitlines()]
    assert len(created) == len(set(created)) == NOTES
    shutil.rmtree(whole)
