"""Use cases of the files beside the notes: search, read, list (docs/spec/attachments.md).

Entered by tools, the console and `services/context`.
Never here: extraction (`stores/attachments`), indexes of notes, wire formats.
"""
