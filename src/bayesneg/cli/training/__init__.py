"""What ``bayesneg train`` has beside its options: run files, trackers, and the lists at the end of its help."""
