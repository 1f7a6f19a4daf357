"""Recipe of the English grounding verifier: data, training, export, measurement."""
