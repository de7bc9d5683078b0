"""The domain model in memory: every note by id, path, slug, URL and tag, and the graph between them.

The writer alone changes it; services and tools read it between two awaits.
Never here: mailboxes, note texts, or anything durable.
"""
