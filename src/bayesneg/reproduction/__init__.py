"""The reproduction lab: the paper's tables and figures, measured here and laid beside the published ones."""
