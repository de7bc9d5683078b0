"""Notes and their files: reading, writing, watching, moving and linking.

Later packages use it.
Never here: rights of the caller.
"""
