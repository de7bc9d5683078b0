"""Attachment settings."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import setting
from lithos.kernel.configuration.sections import SettingsSection
from lithos.kernel.settings import StorageConfig


@frozen(kw_only=True)
class AttachmentsConfig:
    """Settings for files in the notes folder that are not notes."""

    enabled: bool | None = setting(
        None,
        "Find and read PDF files, canvases, drawings, texts and images in the notes folder. null means true "
        "with `storage.vault`, otherwise false.",
    )


def reads_attachments(attachments: AttachmentsConfig, storage: StorageConfig) -> bool:
    """Return whether attachments are found and read."""
    return storage.vault is not None if attachments.enabled is None else attachments.enabled


SETTINGS: Final = (SettingsSection("attachments", AttachmentsConfig, place=80),)
