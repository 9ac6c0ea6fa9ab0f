"""What pods ask for and hold, queues as KAI counts them, and why pods wait.

Objects are JSON as an API server lists them. Amounts are in KAI's units: GPUs in devices, CPU in
millicores, memory in 10^6 bytes.
"""
