"""When pages are written: places are filled, in each format with what it knows."""
