"""A resource's tools and programs: found, loaded, called."""
