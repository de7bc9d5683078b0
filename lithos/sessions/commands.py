"""The `lithos sessions` command."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import CliCommand, take

COMMANDS: Final = (
    CliCommand("sessions", "index, search and read transcripts of AI clients",
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
            CliCommand("search", "search the turns of past sessions", takes=(
                take("query QUERY", "words or question to search for"),
                take("-n --limit", "maximum number of turns (default: 5)", int),
                take("--project KEY", "only sessions of this project, such as github.com/acme/shop"),
            )),
            CliCommand("show", "print a session, or one turn with its neighbours", takes=(
                take("id ID", "id of a session (ses_...), of a turn (ses_...#12), or the client's own id"),
                take("--turn NUMBER", "only this turn and its neighbours", int),
            )),
        ),
        group="read and search", place=85,
    ),
)  # fmt: skip
