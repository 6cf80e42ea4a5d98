"""A record in rows: the node table, the stages, variants side by side; as plain text and as HTML."""
