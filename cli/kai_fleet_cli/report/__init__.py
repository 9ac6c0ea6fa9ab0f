"""`fleet report`: a stack's GPUs at this moment, as an HTML page."""
