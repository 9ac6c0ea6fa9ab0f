"""Queue specs from arguments, and the check that queues of a shared tree are as declared."""
