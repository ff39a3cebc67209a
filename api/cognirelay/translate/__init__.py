"""What do CogniRelay's calls mean?  Pure: requests and documents to answers and documents."""
