"""From failed runs to measured, promoted repairs."""
