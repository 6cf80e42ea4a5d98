"""The cache: files of records and layouts, fingerprints of sources, records of other revisions."""
