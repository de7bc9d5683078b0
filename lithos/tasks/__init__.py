"""Tasks that agents share: claims, dependencies, findings and reviews.

Later packages import this package.
It must not access note files.
"""
