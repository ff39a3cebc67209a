"""The wire shapes of CogniRelay (000)."""
