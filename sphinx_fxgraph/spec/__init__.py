"""The spec: what an author wrote, parsed and in canonical form. Nothing is imported or evaluated here."""
