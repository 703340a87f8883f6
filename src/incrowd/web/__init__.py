"""The web interface: thin routes, templates, no arithmetic.

What only a job or a single page needs (studies, measures, made-up crowds) is imported when it is asked for: with all of
it at the top `incrowd serve` takes two seconds of processor time to start, and one without.
"""
