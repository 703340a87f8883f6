"""The measures: each turns a crowd, a profile and an adversary into an assessment."""
