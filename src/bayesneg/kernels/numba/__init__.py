"""The compiled execution."""
