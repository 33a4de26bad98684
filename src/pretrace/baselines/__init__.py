"""What never sees the model: classifiers of the texts alone, fitted across folds of whole documents."""
