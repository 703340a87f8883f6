"""A crowd as publishable statistics: what a card holds, how it is made safe, and people made up from it.

Knows no measure: what measures add comes as sections, by name (:meth:`incrowd.measures.protocol.Measure.card`).
"""
