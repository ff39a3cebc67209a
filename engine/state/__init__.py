"""Where do the engine's bytes live? One ordered key-value port, on disk and in memory."""
