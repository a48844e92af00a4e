"""Models trained with torch."""
