"""Protocol version 2025-11-25, beside the modern one: translators around the modern engines (LEG)."""
