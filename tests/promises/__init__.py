"""The README's ten promises, each in a file, through public doors: the package's names, its files, processes."""
