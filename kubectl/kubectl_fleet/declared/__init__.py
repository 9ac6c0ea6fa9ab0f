"""Pods and queues as they are written, of which any part may be unknown until an update."""
