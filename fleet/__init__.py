"""What a person runs around `pulumi up`: `python -m fleet …`."""
