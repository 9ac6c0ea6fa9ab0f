"""How stack files and the files that they name are read, and what they may not contain."""
