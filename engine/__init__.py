"""WHAT CAN I ASK OF IT, AND HOW DOES IT KEEP ITS WORD?  Verbs, and the organs that serve them."""
