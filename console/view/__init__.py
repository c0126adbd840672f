"""What the screens show, as plain data: rows, lines and forms that need no terminal to be made or tested."""
