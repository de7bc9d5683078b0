"""Check registry: a check is one decorated function and appears in all views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values import findings
from lithos.kernel.values.findings import (
    DOCTOR,
    RECONCILE,
    SYSTEM,
    VALIDATE,
    CheckFinding,
    check,
    checks_of,
    load_checks,
    warn,
)
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.checks.inspection import shared_inspection
from lithos.upkeep.maintenance.doctor import examine_all, make_patient
from tests.servers import serving


@pytest.mark.parametrize("view", [DOCTOR, SYSTEM, VALIDATE, RECONCILE])
def test_check_names_are_unique_within_a_view(view: str) -> None:
    names = [each.name for each in checks_of(view)]
    assert names
    assert len(names) == len(set(names))


def test_only_checks_of_derived_data_and_files_can_repair() -> None:
    load_checks()
    assert {each.name for each in findings.CHECKS if each.mend is not None} == {
        "indices", "provenance_projection", "DUPLICATE_ID", "MISSING_ID", "MISSING_TITLE",
        "MISSING_AUTHOR",
    }  # fmt: skip


async def test_registered_check_runs_in_doctor_and_in_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_checks()
    monkeypatch.setattr(findings, "CHECKS", [])

    @check("exports", DOCTOR, SYSTEM, place=1)
    def check_exports(patient: Installed) -> Iterator[CheckFinding]:
        yield warn(f"{patient.data.name} is looked at.", "Look away.")

    @check("nothing", DOCTOR, SYSTEM, place=2, when=lambda _: False)
    def check_nothing(_: Installed) -> Iterator[CheckFinding]:
        raise AssertionError("it does not apply")

    told = list[str]()
    config = Config(storage=StorageConfig(data_dir=tmp_path))
    await examine_all(make_patient(config), lambda result: told.append(result.message))
    monkeypatch.undo()
    assert told == [f"{tmp_path.name} is looked at. Look away."]
    async with serving(tmp_path) as lithos:
        monkeypatch.setattr(findings, "CHECKS", [*findings.CHECKS])
        check("exports", SYSTEM, place=1)(check_exports)
        assert (await shared_inspection(lithos.server.get(Installed)).latest()).checks[0].message == told[0]
