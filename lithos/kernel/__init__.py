"""What every capability stands on: parts, errors, times, mailboxes, databases, settings, metrics and the log.

Every package uses it.
Never here: capabilities, and notes.
"""
