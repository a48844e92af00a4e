"""Data larger than memory: files to a folder of mapped arrays, and its splits."""
