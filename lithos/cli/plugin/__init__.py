"""What Claude Code loads: a plugin with a server entry, the skill and hooks; `lithos skill` prints the skill.

`lithos.cli`, its `connect` and `bundle` enter here.
Never here: what a hook does when it runs.
"""
