"""`fleet team …`: flags and questions; the work is in cli/kai_fleet_cli/teams."""
