"""The bare repository: objects, references, packs, versions, history."""
