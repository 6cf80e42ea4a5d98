"""From a record to pictures and text. Knows neither torch nor Sphinx."""
