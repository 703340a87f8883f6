"""Can two pseudonyms be linked, and how many others would the adversary have to consider?"""
