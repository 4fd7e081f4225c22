"""The page: what needs a person, and every evolution with its proof. A process of its own, beside the daemon."""
