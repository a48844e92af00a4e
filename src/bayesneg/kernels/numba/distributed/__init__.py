"""Compiled work of one of several processes: its part of the counts of F."""
