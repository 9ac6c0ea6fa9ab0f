"""Rules about vClusters: version and values."""
