"""Who does the heavy part, and what if they go away?  Tasks that leave the owner of the log.

A job runs with the owner, which alone reads the store and appends; what of it needs neither is a
task, and a task is computed by a worker, or here when nobody else does (docs/adr/0034).
"""
