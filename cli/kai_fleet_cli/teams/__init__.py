"""Commands about one team: an edit of its stack file, and the update that follows."""
