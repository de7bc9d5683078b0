"""Foundation of all capabilities: parts, errors, mailboxes, databases, settings, metrics and the log.

All packages may import the kernel. The kernel contains no capability and knows nothing about notes.
"""
