"""Rules about KAI: its version, values and features."""
