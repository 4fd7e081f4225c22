"""What other distributions bring: kinds of plug-ins, how they are found, and what keeps them harmless."""
