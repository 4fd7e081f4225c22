"""From evidence to stored candidates: what a proposer may know, and what its edit must look like."""
