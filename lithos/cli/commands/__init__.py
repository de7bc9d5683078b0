"""One module per group of commands, imported only when the command runs.

`lithos.cli` dispatches to it.
Never here: business logic; commands call app and front/bridge.
"""
