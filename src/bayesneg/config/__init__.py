"""Names and settings as text, and the objects they name."""
