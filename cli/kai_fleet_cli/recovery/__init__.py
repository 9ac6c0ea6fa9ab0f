"""What an interrupted or failed run leaves: told in a sentence, settled, put back."""
