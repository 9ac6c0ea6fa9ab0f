"""What commands print: screens, tables, Markdown."""
