"""Transcripts of AI clients (Claude Code, Codex, Gemini CLI, opencode), searchable where they are stored.

Only `app` imports this package.
It must not change a transcript, write to the vault, touch the index of the notes, or store text that was not
masked (`model.masking`).
"""
