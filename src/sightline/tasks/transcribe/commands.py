"""`sightline transcribe`: recordings in, phones or words with their times out."""

def transcribe() -> None:
    """stub"""
