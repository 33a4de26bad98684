"""The colours of the plots that stand beside the results."""

INK, OURS, OTHER = "#333333", "#1f5f8b", "#b9b9b9"
