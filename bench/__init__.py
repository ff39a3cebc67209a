"""HOW GOOD, HOW FAST?  Ratios within one run, with the load of the machine beside them."""
