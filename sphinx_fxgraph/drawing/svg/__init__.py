"""What is drawn: colours, labels and the two SVG writers, for a page and for print."""
