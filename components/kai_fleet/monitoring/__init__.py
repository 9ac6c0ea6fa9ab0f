"""What Prometheus and Grafana are told of a fleet."""
