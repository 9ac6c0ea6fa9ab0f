"""Monitors, recording rules, alerts and dashboards for the Prometheus operator of a host."""
