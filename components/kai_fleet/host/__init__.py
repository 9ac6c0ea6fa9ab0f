"""What a host cluster has for everybody: GPU stack, host scheduler and its queues."""
