"""How few of your posts, read elsewhere, does it take to recognise you in a community?"""
