"""Audits with control documents: how often they err, what each part is good for, what a reading leaves."""
