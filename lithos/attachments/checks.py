"""The doctor check for attachments."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from lithos.attachments.files.folder_scan import survey_attachments
from lithos.attachments.model.kinds import kind_of
from lithos.attachments.settings import AttachmentsConfig, reads_attachments
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import DOCTOR, CheckFinding, Installation, check, has_data, ok, warn


@check(
    "attachments",
    DOCTOR,
    place=130,
    when=lambda each: (
        has_data(each) and reads_attachments(each.config.of(AttachmentsConfig), each.config.of(StorageConfig))
    ),
)
def check_attachments(patient: Installation) -> Iterator[CheckFinding]:
    """Check whether the PDF files of the notes folder can be read. A warning names the package to install."""
    found = survey_attachments(patient.survey.files)
    papers = [path for path in found if kind_of(path) == "pdf"]
    if papers and find_spec("pypdfium2") is None:
        yield warn(
            f"{len(papers)} PDF files are listed but not read, because the PDF library is not installed.",
            "Run: pip install 'lithos-server[pdf]', then restart the server.",
        )
    yield ok(f"{len(found)} files other than notes can be found and read. They stay in place.")
