"""What the integrations are worth, in generated worlds where the false negatives are known; needs their extra."""
