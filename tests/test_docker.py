"""The container's files fit together and fit the product; `docker/rehearse.sh` runs their steps."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

DOCKER = Path(__file__).parent.parent / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text()


def test_compose_keeps_the_root_read_only_and_the_port_on_this_machine() -> None:
    service = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]["lithos"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert any(volume.endswith(":/data") for volume in service["volumes"])


def test_the_image_runs_without_rights_on_the_port_and_volume_of_the_specification() -> None:
    """docs/spec/cli-config.md §6"""
    assert re.search(r"^USER \d+:\d+$", DOCKERFILE, re.MULTILINE)
    for line in ("VOLUME /data", "EXPOSE 8765", 'CMD ["serve", "--transport", "http", "--host", "0.0.0.0"]'):
        assert line in DOCKERFILE
    assert "LITHOS_DATA_DIR=/data" in DOCKERFILE
    assert "HEALTHCHECK" in DOCKERFILE


def test_what_the_image_copies_is_not_ignored() -> None:
    ignored = (DOCKER.parent / ".dockerignore").read_text().split()
    for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.MULTILINE):
        for source in line.split()[:-1]:
            assert f"!{source}" in ignored
            assert (DOCKER.parent / source).exists()


@pytest.mark.slow
def test_the_rehearsal_of_the_container_passes() -> None:
    run = subprocess.run(
        ["bash", str(DOCKER / "rehearse.sh")], capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.rstrip().endswith("rehearsal passed")
