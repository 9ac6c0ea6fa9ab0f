"""The components for Pulumi programs of every language: schema, arguments, construction.

A thin façade. What a program gives is read by the settings models that read a stack file, judged by
the same rules, and handed to the components that this repository's own program declares.
"""
