"""Protocol version 2025-11-25, beside the modern one: translators around the modern engines (LEG).

:mod:`.server` serves both eras on one endpoint, :mod:`.requester` speaks to servers of either.
"""
