"""An audit as something to read: `page.render` for the page, its first sheet for readers of no trade."""
