"""Between reading and writing: capture, layout, comparison, outdated pages, builders."""
