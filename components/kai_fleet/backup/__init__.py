"""Backups of a vCluster on a schedule: the Jobs, their scripts, and what they may do."""
