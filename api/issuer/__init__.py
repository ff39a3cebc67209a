"""WHO SIGNS THE TOKENS?  The reference issuer `cortex-auth-ref` (001 §4.6), a program of its own.

It shares the schema of a token with the server, and nothing else: what verifies never signs.
"""
