"""What the projects have published: the versions in their registries."""
