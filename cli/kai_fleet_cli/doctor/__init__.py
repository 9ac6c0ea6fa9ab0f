"""`fleet doctor`: what is wrong on the live clusters of a stack, why, and what to do.

It reads and never writes: `read` asks the API servers, `checks` judge what they answered.
"""
