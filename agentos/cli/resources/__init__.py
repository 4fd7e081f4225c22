"""What shapes an agent: the registry, skills, memories, rules."""
