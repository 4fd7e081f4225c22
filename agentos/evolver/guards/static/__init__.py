"""Guards that read base and candidate as text: nothing is executed."""
