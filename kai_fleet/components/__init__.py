"""What is declared: settings, release tables and the Pulumi components built from them."""
