"""The other tests of collections, and flagging: how often they accuse innocents, and what they find."""
