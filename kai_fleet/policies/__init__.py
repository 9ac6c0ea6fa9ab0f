"""What is allowed: rules about queues, workloads, namespaces, teams and versions."""
