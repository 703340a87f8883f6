"""The papers' experiments on any crowd: rows first, figures after."""
