"""What a team asks its own cluster, and what reads it: without Pulumi, in a wheel of its own."""
