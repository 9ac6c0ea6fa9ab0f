"""Rules about what runs: pods, and everything that carries a pod template."""
