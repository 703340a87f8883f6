"""What has a person told about themselves in their own posts, and how many people does it fit together?"""
