"""One vCluster of a team, and the values of its chart."""
