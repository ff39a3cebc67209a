"""WHAT DO THE FURTHER SYSTEMS KEEP?  Documents that follow from what was said through them."""
