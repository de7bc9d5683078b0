"""Programs of agents: connecting them, their hooks, plugin and bridge.

`lithos.app` alone uses it.
Never here: a vault of its own.
"""
