"""Tasks that agents share, with claims, dependencies, findings and reviews.

The packages above it use this package. It must not access note files.
"""
