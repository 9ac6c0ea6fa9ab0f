"""What judges a team's pods where they are made: queue guard, outside queues, templates."""
