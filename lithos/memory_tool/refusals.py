"""Refusals of memory commands. Their messages are answers to the model."""

from __future__ import annotations


class Refusal(Exception):
    """The command was not carried out, and nothing was changed unless the message says so."""


class StoreProblem(Exception):
    """The store could not carry out a step. The command decides what to answer."""


class Changed(StoreProblem):
    """Another writer changed the file after it was read. The command is tried again."""


class Missing(StoreProblem):
    """There is no file with this path."""


class Exists(StoreProblem):
    """A file or folder has the path of a new one."""
