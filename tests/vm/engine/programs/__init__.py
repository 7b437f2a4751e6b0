"""Programs that run in a guest beside the engine. Each prints one JSON object; some tell where they are and wait."""
