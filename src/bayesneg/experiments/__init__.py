"""From names and settings to runs: what the command line and the experiment files are made of."""
