"""Stand-ins for the programs of KAI."""
