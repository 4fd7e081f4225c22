"""One plug-in of each kind; each module is one of them."""
