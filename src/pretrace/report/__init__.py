"""A run as something to read: `html.render` for the page, `heat.print_heat` for the terminal."""
