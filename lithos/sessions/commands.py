"""The `lithos sessions` command."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import CliCommand, take

COMMANDS: Final = (
    CliCommand("sessions", "index transcripts of AI clients, and list what is indexed",
        "lithos.sessions.commands_folders:run_sessions", chosen="action", parts=(
            CliCommand("add", "index the transcripts of a client or of a folder", takes=(
                take("name NAME", "claude-code, codex, gemini, opencode, or the path of a folder or file "
                                  "of JSON lines"),
            ), description="Index the transcripts of a client or of a folder, and follow them as they grow. "
                           "Transcripts are never changed. Secrets are masked before anything is stored."),
            CliCommand("remove", "stop indexing a folder, or remove one session from the index", takes=(
                take("name NAME", "name of an added folder, or id of a session (ses_...)"),
            ), description="Stop indexing a folder, and remove its sessions from the index. With the id of a "
                           "session, remove only that session, and never index it again. Transcripts stay."),
            CliCommand("list", "list the added folders, and transcripts that could not be read"),
        ),
        group="read and search", place=85,
    ),
)  # fmt: skip
