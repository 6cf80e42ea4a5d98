"""A laid-out view as SVG, HTML, DOT, PDF or text."""
