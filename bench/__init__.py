"""`make bench`: the program beside bare `kubectl` and `helm`, in one run, on the sandbox."""
