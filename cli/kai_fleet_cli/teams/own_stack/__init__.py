"""Teams with a stack of their own: moved there, and their credentials."""
