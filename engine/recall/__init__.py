"""What do we know about this?  Plan, gather, temporal, rank, select, pack (DESIGN §6)."""
