"""`fleet teams`: the teams of a platform, wanted and running."""
