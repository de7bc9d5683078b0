"""Trio tasks that each own one kind of mutable state and take messages from a bounded mailbox.

Services send messages and read handles; the kit and the thread port are here, an actor in its folder.
Never here: wire formats, tools, or state that two tasks change.
"""
