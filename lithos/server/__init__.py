"""What serves people and agents, whatever a server can do.

Every capability may enter.
Never here: what a capability does.
"""
