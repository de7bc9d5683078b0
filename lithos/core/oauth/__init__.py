"""Rules of letting in clients that live elsewhere: requests, redirect URIs, grants, addresses, claims.

Pure functions and values; stores, services, the front and commands enter.
Never here: fetching, files, clocks, or the making of secrets.
"""
