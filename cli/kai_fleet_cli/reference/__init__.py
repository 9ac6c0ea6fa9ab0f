"""What `make reference` and `make check` write and look up: pages from the code, known faults."""
