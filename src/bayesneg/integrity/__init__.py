"""Trust in stored files: what arrays must look like, digests of files, and locks."""
