"""`fleet report`: the GPUs of a stack now, as a page of HTML."""
