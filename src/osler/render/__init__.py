"""One report drawn as terminal text, page, JSON, SARIF or JUnit. Nothing heavy is imported until a renderer is used."""
