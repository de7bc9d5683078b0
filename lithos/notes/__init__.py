"""Notes and their files: reading, writing, watching, moving and linking.

Later packages use it.
Never here: permissions of the caller.
"""
