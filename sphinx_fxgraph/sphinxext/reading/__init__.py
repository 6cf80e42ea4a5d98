"""While pages are read: what authors write is checked, noted, and leaves places to be filled."""
