"""The policy pack: the rules as policies of Pulumi."""
