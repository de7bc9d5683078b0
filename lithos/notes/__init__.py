"""Notes and their files: reading, writing, watching, moving and linking.

Packages in higher layers import this package. It must not check the permissions of the caller.
"""
