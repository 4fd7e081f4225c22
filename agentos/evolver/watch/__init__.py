"""What a promotion does in live use, until it is settled or taken back."""
