"""What components share: how they check arguments, compute inputs, and declare their children."""
