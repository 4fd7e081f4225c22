"""Whether a candidate's trials deserve a promotion: computed from trials and policy, nothing else is read."""
