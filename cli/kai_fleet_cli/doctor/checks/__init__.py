"""The checks: plain functions from what was read to findings, each in a module of its own."""
