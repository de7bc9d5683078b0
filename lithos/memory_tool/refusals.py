"""Refusals of memory commands. Their messages are answers to the model."""

from __future__ import annotations


class Refusal(Exception):
    """The command was not carried out, and nothing was changed unless the message says so."""


class Changed(Exception):
    """Another writer changed the file after it was read. The command is tried again."""


class Missing(Exception):
    """There is no file with this path."""


class Exists(Exception):
    """A file or folder has the path of a new one."""
