"""Node tables and stage tables as rows, columns and HTML."""
