"""One file for each form in which other systems write their runs down."""
