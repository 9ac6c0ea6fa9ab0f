"""Backups of a team's vCluster: taken from its control plane, and restored into one."""
