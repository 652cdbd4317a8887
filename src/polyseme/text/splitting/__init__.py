"""How running text is cut, language by language, and how what was cut is found in the text again."""
