"""WHAT DO THE FURTHER SYSTEMS LOOK LIKE?  Shapes of the wire, and the document they keep."""
