"""HOW IS IT SPOKEN TO?  Thin: decode, call one verb, encode."""
