"""Between reading and writing: what is captured, drawn and compared, and which pages show something new."""
