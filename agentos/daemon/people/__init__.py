"""What people are told and asked, and what they say."""
