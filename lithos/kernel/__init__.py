"""What every capability stands on: the parts of a server, and what a capability declares.

All may enter.
Never here: capabilities, and notes.
"""
