"""Output of commands: text, tables, Markdown."""
