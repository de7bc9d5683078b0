"""The enrich worker: a background consumer of events that learns, off the path of reads and writes.

Only the composition starts it.
Never here: anything a tool call waits for.
"""
