"""Notes and their files: reading, writing, watching, moving and linking.

The packages above it import this package. It must not check the permissions of the caller.
"""
