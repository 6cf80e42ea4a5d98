"""Which source files a record depends on, found while it is made."""
