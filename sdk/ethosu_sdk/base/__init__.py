"""What every room needs: errors, text, files, processes, arrays, targets, boards and tools. It imports no room."""
