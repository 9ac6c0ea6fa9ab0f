"""What a vCluster's values and flags may say, as data, and its readers."""
