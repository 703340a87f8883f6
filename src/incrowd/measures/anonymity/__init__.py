"""How many people in this community are as like you as d?"""
