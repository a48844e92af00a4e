"""Compiled work of one of several processes: its part of the draws of a batch, its part of the counts of F."""
