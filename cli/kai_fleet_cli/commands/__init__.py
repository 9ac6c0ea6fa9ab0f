"""The commands of `fleet`: flags and questions; what they do is in the folders beside."""
