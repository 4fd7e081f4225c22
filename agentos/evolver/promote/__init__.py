"""From a verdict to the stable pointer: consent, review, probe, promotion and its way back."""
