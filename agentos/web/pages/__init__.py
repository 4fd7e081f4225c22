"""What each page shows, gathered from the home; how it looks is said in ``templates/``."""
