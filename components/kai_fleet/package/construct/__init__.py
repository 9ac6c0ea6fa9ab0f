"""From what a program gives a component to the component itself, one function for each."""
