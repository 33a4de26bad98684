"""Whatever ends in an outcome: audits, flaggings, and tests whose null distribution is known by construction or rests
on one stated assumption. One rule concludes (`verdicts.outcome`)."""
