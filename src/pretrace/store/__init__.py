"""What stays on disk: traces that need not be computed twice (`traces`), runs (`runs`), and the writing of
files and folders whole or not at all (`atomic`)."""
