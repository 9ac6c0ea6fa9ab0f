"""Reference pages that are written from the code: docs/settings.md and docs/commands.md."""
