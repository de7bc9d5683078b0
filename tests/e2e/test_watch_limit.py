"""Server for which the system permits too few file watches. It must still notice changes of its notes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e import process
from tests.e2e.faults.scene import scene

LIMIT = "/proc/sys/user/max_inotify_watches"
#: Lower the limit in a separate user namespace, so that the limit of the machine does not change.
SCRIPT = f'echo 3 > {LIMIT} && exec "$@"'


@pytest.mark.slow
async def test_edits_beyond_the_watch_limit_are_noticed_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 199"""
    inside = ("unshare", "--user", "--map-root-user", "sh", "-c", SCRIPT, "sh")
    try:
        subprocess.run([*inside, sys.executable, "-c", ""], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError) as refusal:
        pytest.skip(f"no user namespace with a limit of its own: {refusal}")
    monkeypatch.setattr(process, "LITHOS", (*inside, *process.LITHOS))
    async with scene(tmp_path, 20) as it:
        await it.until_healthy("watcher", status="ok", mode="poll")
        for number, path in enumerate(list(it.words)):
            it.put(number, path, f"edited{number}x")
        await it.verify()
        assert it.told == {"note.updated": 20}
        assert "fs.inotify.max_user_watches" in it.server.log()
