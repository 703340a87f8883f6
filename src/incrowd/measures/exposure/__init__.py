"""Where do I rank in my community for a sensitive topic, as an adversary would see it (paper 004)?"""
