"""What all tools share: registry, argument classes, rows of values, metering.

Tools build on it; the front sees only the registry and the protocol faults.
Never here: a tool.
"""
