"""The real servers, scripted runs and small data that several tests share."""
