"""Foundation of all capabilities: parts, errors, mailboxes, databases, settings, metrics and the log.

All packages import this package.
It must not contain capabilities or depend on notes.
"""
