"""The tools of the sandbox: found on PATH, fetched, or built."""
