"""What a change of a stack file changes, in words, as Markdown and as JSON."""
