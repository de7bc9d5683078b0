"""Tasks that agents share: claims, dependencies, findings and reviews.

Only later packages may import it. It never touches note files.
"""
