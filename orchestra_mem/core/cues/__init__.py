"""The words and the grammar by which sentences are known: tables of cues, one for each kind of fact."""
