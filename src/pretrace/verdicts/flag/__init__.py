"""Which of these texts were seen? Each is held against known non-members, with a rate on the false flags.

Texts and known non-members are scored together; each text's conformal p-value says how it ranks among the
non-members (`statistics.conformal`), and the texts that pass at the rate are flagged. That rate is a promise
only while a text that was not seen could have stood among the known ones. So the answer is refused where one
who never saw the target tells the two sets apart: a classifier of words, one of form, the texts' lengths, or the
same score on a placebo.
"""

from pretrace.verdicts.flag.flag import flag, flag_run
from pretrace.verdicts.flag.planning import SCORE, FlagPlan, FlagSettings, plan

__all__ = ["SCORE", "FlagPlan", "FlagSettings", "flag", "flag_run", "plan"]
