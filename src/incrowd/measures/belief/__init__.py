"""How sure can somebody be of what you hid, given what you published and what they know (paper 000, section 4)?"""
