"""WHAT DO THINGS LOOK LIKE?  Frozen structs and value types: they parse, they never decide."""
