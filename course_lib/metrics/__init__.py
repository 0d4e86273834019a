"""Service: scores for translation, labels, entities, spans and calibration."""
