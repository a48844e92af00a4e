"""From files, frames and generators to frozen interactions and splits."""
