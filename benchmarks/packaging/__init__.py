"""What a user installs: the wheel, its dependencies, their sizes and licences."""
