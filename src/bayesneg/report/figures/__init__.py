"""Figures: drawn once, shown on pages as SVG or exported for print."""
