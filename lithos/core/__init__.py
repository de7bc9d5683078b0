"""Pure logic: values in, values out; no trio, files, clock, randomness or logging.

Every room may import it; it imports only itself.
Never here: I/O, actors, wire formats of a transport.
"""
