"""What the host's guard of a team lets through: its expressions, and the same as functions."""
