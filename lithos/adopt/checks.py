"""The doctor check for adopted memory folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lithos.adopt.files_adopting import linked_of
from lithos.adopt.model_clients import CLIENTS
from lithos.adopt.settings import MemoryConfig
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import (
    DOCTOR,
    SYSTEM,
    CheckFinding,
    Installation,
    check,
    has_data,
    ok,
    warn,
)
from lithos.notes.linked.linked_folders import LINKED_NAME


@check(
    "adopted memory",
    DOCTOR,
    SYSTEM,
    place=135,
    when=lambda each: has_data(each) and os.path.exists(each.private / LINKED_NAME),
)
def check_adopted(patient: Installation) -> Iterator[CheckFinding]:
    """Check that the adopted folders exist, and that their clients load the whole index."""
    listed = linked_of(patient.config.of(StorageConfig)).listed
    trims = patient.config.of(MemoryConfig).trim
    for each in listed:
        client = CLIENTS.get(each.client)
        if not os.path.isdir(each.folder):
            yield warn(
                f"The adopted folder {each.folder} is missing. Its notes in {each.prefix} are kept.",
                f"Put the folder back, or run: lithos adopt --remove --folder {each.folder}",
            )
            continue
        if client is None:
            continue
        try:
            excess = client.excess(Path(each.folder, client.index).read_bytes())
        except FileNotFoundError:
            continue
        except OSError as failure:
            reason = f"The index {each.prefix}/{client.index} cannot be read: {failure}."
            yield warn(reason, "Check the permissions of the file.")
            continue
        if excess:
            has_way = client.may_be_trimmed and not trims
            way = "Move lines to topic files" + (", or set memory.trim to true." if has_way else ".")
            yield warn(
                f"{each.prefix}/{client.index} has {excess}, so {client.title} does not load all of it.", way
            )
    if listed:
        yield ok(f"{len(listed)} memory folders of clients are served in place.")
