"""What is wrong with pods and queues in themselves; the policy pack has these rules, too."""
