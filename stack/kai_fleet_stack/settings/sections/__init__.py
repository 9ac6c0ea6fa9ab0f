"""The sections of a stack file, one file each: their keys, types and defaults."""
