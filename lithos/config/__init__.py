"""The configuration: frozen values, where they come from, and what they may be.

Every room but core may import it; it is a leaf and imports nothing else of Lithos.
Never here: what a setting does.
"""
