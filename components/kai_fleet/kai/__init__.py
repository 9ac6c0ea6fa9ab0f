"""KAI on a host or inside a vCluster: release, values, queues, shards and topologies."""
