"""Fakes of the ports, for our tests and for authors of skills, tools and proposers."""
