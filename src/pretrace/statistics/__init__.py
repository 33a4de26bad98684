"""What the scores are worth: ROC figures, intervals over documents, and the blind baseline beside them."""
