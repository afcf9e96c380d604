"""The same work done by Sightline and by what users would take in its place."""
