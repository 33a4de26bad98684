"""How large: memory and time over very many texts, workers, kills."""
