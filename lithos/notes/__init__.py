"""Notes and their files: reading, writing, watching, moving and linking.

Later packages use this package. It must not check the permissions of the caller.
"""
