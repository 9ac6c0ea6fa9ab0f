"""What a stack file means: the arguments of its components, and the clusters that it declares.

`arguments` are what the program gives the components, `declared` the clusters that rules judge, and
that plan, doctor and report hold what they see against.
"""
