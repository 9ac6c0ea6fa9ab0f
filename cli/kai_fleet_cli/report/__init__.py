"""`fleet report`: a stack as one page of HTML, for whoever pays for the GPUs.

`live` and `planned` make the numbers of `model`; `page` writes them.
"""
