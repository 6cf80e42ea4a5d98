"""The directives: what is checked and noted while pages are read."""
