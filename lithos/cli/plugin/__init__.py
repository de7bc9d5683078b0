"""The forms in which Lithos is given away: the plugin of Claude Code, the skill, and what is published.

`lithos skill`, `connect --plugin` and `bundle` enter here.
Never here: what a hook does when it runs; publishing, since nothing is sent anywhere.
"""
