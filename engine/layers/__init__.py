"""What does each layer hold?  Pages and single records of what was derived (001 §8.7)."""
