"""Programs that agents run in: their configuration, hooks and plugin, and the bridge.

`lithos.app` alone may enter.
Never here: what a server answers.
"""
