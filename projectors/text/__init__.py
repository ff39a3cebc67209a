"""What does this text say?  Pure: an envelope in, candidates out; it looks nothing up.

The rest of the house reads `extract` and the shapes in `candidates`.
"""

from projectors.text.candidates import Candidate, Extraction, Mention, Passage, Value

__all__ = ["Candidate", "Extraction", "Mention", "Passage", "Value"]
