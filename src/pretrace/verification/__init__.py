"""Whether a result folder is what was written: its hashes, its report, and the texts that it is about."""

from pretrace.verification.verify import Checked, Verification, verify, verify_folder

__all__ = ["Checked", "Verification", "verify", "verify_folder"]
