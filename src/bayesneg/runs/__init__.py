"""What a training leaves behind: the run, its record, and the folder that keeps them."""
