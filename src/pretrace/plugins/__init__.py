"""What the core does without: each folder here has commands of its own, and the core imports none of them."""

COMMANDS = {
    "recite": "pretrace.cli.testing:recite",
    "mark texts": "pretrace.cli.marking:mark",
    "mark order": "pretrace.cli.marking:order",
    "mark check": "pretrace.cli.marking:check",
    "mark canaries": "pretrace.cli.marking:canaries",
    "scan": "pretrace.cli.scanning:scan",
    "samples": "pretrace.cli.harness:samples",
    "build patents": "pretrace.cli.building:patents",
    "build dated": "pretrace.cli.building:dated",
    "build ccnews": "pretrace.cli.building:ccnews",
    "build quality": "pretrace.cli.building:quality",
    "build gap": "pretrace.cli.building:gap",
    "serve": "pretrace.cli.serving:serve",
}
"""Where the command of a plug-in is made, by what is typed."""
