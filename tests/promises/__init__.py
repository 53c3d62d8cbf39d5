"""The README's ten promises, a file each, tested through the public API, the files and separate processes."""
