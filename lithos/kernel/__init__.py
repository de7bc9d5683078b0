"""The base of every capability: parts, errors, mailboxes, databases, settings, metrics and the log.

All packages use it.
Never here: capabilities, and knowledge of notes.
"""
