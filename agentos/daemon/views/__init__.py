"""What a screen or a page shows, gathered; drawn elsewhere."""
