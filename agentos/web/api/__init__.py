"""What other programs use of a home over HTTP: its nouns under ``/api/v1``, and its agents as OpenAI's models under ``/v1``."""
