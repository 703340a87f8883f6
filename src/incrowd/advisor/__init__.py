"""One person, one answer: every measure that applies, why, and what to do about it."""
