"""Pure description of fabrics: units, model, addresses, paths, checks and builders.

Nothing in here needs root, opens a socket or starts a process.
"""
