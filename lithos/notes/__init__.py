"""Notes and their files: reading, writing, watching, moving and linking.

Used by later packages.
Never here: the permissions of the caller.
"""
