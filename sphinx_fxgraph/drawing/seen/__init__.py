"""What is seen of a record: folded, grouped and opened into levels of boxes, with a spine."""
