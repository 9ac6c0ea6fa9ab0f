"""`fleet team …`: flags and questions; the work is in kai_fleet/cli/teams."""
