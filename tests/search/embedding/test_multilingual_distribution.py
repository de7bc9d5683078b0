"""The distribution of the multilingual model: metadata, files and hashes (behaviour 420)."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lithos.search.embedding.transformer_models import MULTILINGUAL

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "models" / "accurate-multi"
FILES = FOLDER / MULTILINGUAL.package

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the tree has no models/accurate-multi")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "pyproject.toml").read_text())


def test_files_have_the_listed_hashes() -> None:
    listed = dict(line.split()[::-1] for line in (FILES / "SHA256SUMS").read_text().splitlines())
    assert set(listed) == {"NOTICE.md", "centre.npz", "config.json", "model.onnx", "tokenizer.json"}
    for name, digest in listed.items():
        with (FILES / name).open("rb") as stream:
            assert hashlib.file_digest(stream, "sha256").hexdigest() == digest, name
    assert MULTILINGUAL.hashes.items() <= listed.items()


def test_wheel_has_all_files_and_stays_below_70_megabytes(project: dict[str, Any]) -> None:
    """The model is int8 already, so the wheel is nearly as large as its files (55 of 65 MB)."""
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [MULTILINGUAL.package]
    assert sum(path.stat().st_size for path in FILES.iterdir() if path.is_file()) < 70_000_000
    assert (FOLDER / project["project"]["readme"]).is_file()
    for name in project["project"]["license-files"]:
        assert (FOLDER / name).is_file()
    licence = (FILES / "LICENSE").read_text()
    assert "Permission is hereby granted" in licence
    assert "Apache License" in licence


def test_distribution_needs_the_same_onnxruntime_as_the_extra(project: dict[str, Any]) -> None:
    """One command installs the model and all that it needs."""
    server = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dependencies"] == server["project"]["optional-dependencies"]["accurate"]
    least = ".".join(map(str, MULTILINGUAL.versions[0]))
    assert project["project"]["dependencies"] == [f"onnxruntime>={least},<1.31"]
    assert MULTILINGUAL.install == f"pip install ./{FOLDER.relative_to(ROOT)}"
