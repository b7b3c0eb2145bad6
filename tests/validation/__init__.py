"""Physics on the live fabric against theory and published tables, within their tolerances."""
