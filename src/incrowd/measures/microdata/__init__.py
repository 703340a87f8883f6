"""How many others would fit what somebody knows of your likes, ratings or purchases (paper 002)?"""
