"""A record in words and rows: facts, outline, node tables, stages."""
