"""`fleet init`: a first stack file from what a live cluster has."""
