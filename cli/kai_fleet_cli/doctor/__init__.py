"""`fleet doctor`: what is wrong on the live clusters of a stack, why, and what to do.

It never writes to a cluster: `read` asks the API servers, `checks` judge their answers.
"""
