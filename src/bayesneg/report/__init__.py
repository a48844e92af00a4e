"""Plots, the summary table and the one-file HTML report, made from records alone."""
