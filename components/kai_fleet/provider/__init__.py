"""The product's own Pulumi provider: queue trees, each as one resource.

One resource for each queue is what the file backend cannot bear: it writes the whole state anew at
each step, so 500 queues took 36 s of which 28 s were that (P7 in docs/traps.md).
"""
