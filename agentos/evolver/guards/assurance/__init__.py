"""Guards that try a candidate with what the kernel brings along, and ask boxes who they are."""
