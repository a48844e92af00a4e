"""Names and settings as text, and the objects they stand for."""
