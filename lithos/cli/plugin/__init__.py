"""The plugin of Claude Code and the skill.

`lithos skill`, `connect --plugin` and the release script `.ci/bundle.py` enter here.
Never here: what a hook does when it runs; publishing.
"""
