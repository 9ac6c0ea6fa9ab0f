"""Who holds what of a cluster, and who waits for how much: plain data and plain functions.

`reading.read` asks a cluster, `counting.usage` counts what it answered. Nothing here prints.
"""
