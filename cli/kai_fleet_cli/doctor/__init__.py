"""`fleet doctor`: what is wrong on the live clusters of a stack, in words, with the fix.

It reads and never writes. `gather` asks the API servers, `examine` what was answered.
"""
