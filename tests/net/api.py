"""What of pretrace the net uses, the tests that notice a wrong number. Where sources move, only this file is edited.

`name` stands for what its module calls so, `name=other` for what the module calls `other`, `name=*` for the module. A
name is looked up when a test imports it, so that a test of statistics waits for no torch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAMES = {
    "pretrace.backends": "open_model",
    "pretrace.backends._inside": "bits=_bits count=_count",
    "pretrace.backends.adapters": "CARD KEY WEIGHTS attach",
    "pretrace.backends.generation": "continuation=_continuation distribution=_distribution draw=_draw",
    "pretrace.backends.huggingface": "HuggingFace likeness prefixes=*",
    "pretrace.backends.instructed": "Completer",
    "pretrace.backends.proposals": "open_proposer",
    "pretrace.backends.naming": "ModelSettings",
    "pretrace.backends.tokens": "GAIN LEAST STARTS WIDTH alike pack pack_alike",
    "pretrace.cache": "cache_folder text_key",
    "pretrace.corpora": "Columns open_corpus open_stream",
    "pretrace.corpora.formats": "FORMATS",
    "pretrace.corpora.reading": "Reading=TextReading USUAL",
    "pretrace.errors": "ExpressionError LeakError ModelError OutputError PretraceError TableError TextsError",
    "pretrace.frequencies": "Counting Frequencies counting frequencies_count=count seams",
    "made": "evaluate sign_flip tpr_at_fpr two_sample",
    "pretrace.jobs": "ShardJob work",
    "pretrace.results.wording": "rounding_p_value=p_value",
    "pretrace.results.run": "run_load_run=load_run run_save_run=save_run",
    "pretrace.runs": "load_run save_run save_verdict scan",
    "pretrace.plugins": "SCORES",
    "pretrace.plugins.scan.corpus": (
        "CorpusFile Reader=CorpusReader cut_of=_cut_of strings_of_item=_strings_of_item "
        "strings_of_lines=_strings_of_lines"
    ),
    "pretrace.plugins.scan.folding": "FoldedTexts Strings fold_pieces fold_strings hash_of streams_of",
    "pretrace.plugins.scan.searching": "REPEATS FileSearch Table=BlockTable",
    "pretrace.scores": "parse scores",
    "pretrace.scores.neurons": "GRID NAPDD",
    "pretrace.scoring": "evidence merging=parts scoring_detect=detect worker=parts",
    "pretrace.scoring.detect": "Options Worker=Scorer check_label_counts detect",
    "pretrace.scoring.evaluation": "evaluate_corpus=evaluate measure",
    "pretrace.scoring.evidence": "Progress encoded_for Traces trace",
    "pretrace.scoring.holdout": "check_disjoint set_aside",
    "pretrace.scoring.outlook": "Watch",
    "pretrace.scoring.parts": "ScoredRows Turn run_of",
    "pretrace.scoring.plan": "Models ScorePlan check_placebos",
    "pretrace.statistics": "conformal documents permutation roc",
    "pretrace.statistics.conformal": "adjusted drawn_pieces flagged least_together needed p_values set_shift",
    "pretrace.statistics.documents": (
        "Grouping MEMBERS NONMEMBERS by_document grouped_folds grouped_split mean_interval share_interval standardised"
    ),
    "pretrace.statistics.roc": (
        "RankedScores=_RankedScores accuracy=_accuracy allowance=_allowance auc best_threshold for_few=_for_few "
        "group_bootstrap holm=_holm roc_curve tail_share"
    ),
    "pretrace.statistics.permutation": (
        "PlantedValues auc_documents auc_power controls_left_out randomisation_test sign_bound=_sign_bound "
        "sign_gamma=_sign_gamma two_sample_shift=_two_sample_shift two_sample_test wilcoxon_bound=_wilcoxon_bound "
        "wilcoxon_gamma=_wilcoxon_gamma"
    ),
    "pretrace.testing": "Memory make_evidence make_trace",
    "pretrace.tuning": "make_adapter select=_select training tuned_model",
    "pretrace.tuning.artifacts": "read_adapter",
    "pretrace.tuning.plan": "Lora TrainingPlan methods",
    "pretrace.tuning.planting": "split_members windows",
    "pretrace.tuning.training": "batches_pieces=_pieces epoch_batches=_epoch_batches rate=_rate train",
    "pretrace.types": (
        "Check Comparison Continued Control Corpus Curve Drawn Encoded Estimate Evaluation Evidence Firing "
        "Gap Heat Hidden Measured Peak Power Quantity Recipe Reference Run Sampling Skipped Text Trace View "
        "Written"
    ),
    "pretrace.plugins.recite": "recite=* recite_recite=recite windows_of",
    "pretrace.verdicts.audit": "checks",
    "pretrace.verdicts.audit.data": (
        "AuditData AuditSettings DocumentValues Logprobs Placebo answer beyond expressions logprob_gains logprobs "
        "permuted"
    ),
    "pretrace.verdicts.audit.checks": "graded placebo_check",
    "pretrace.verdicts.audit.procedures": (
        "judge_halves Features LinearLayer Normaliser any_of gradient halves original outlier_share paper release "
        "scaled_by_suspect t_test"
    ),
    "pretrace.verdicts.audit.snippets": "Sample",
    "pretrace.plugins.marks": "canaries marks=*",
    "pretrace.plugins.marks.canaries": "CanarySettings natural_canaries",
    "pretrace.verdicts.flag": "concluding flagging=flag",
    "pretrace.verdicts.flag.flag": "flag set_test",
    "pretrace.verdicts.flag.planning": "FlagSettings plan",
    "pretrace.verdicts.flag.concluding": "checks_placebo_check=placebo_check row_checks",
    "pretrace.plugins.marks.checking": "CheckSettings check_marks",
    "pretrace.verdicts.outcome": (
        "Beyond=ExcessOverSecondModel DOSE ENOUGH Found=ObservedFinding SECOND conclude null_of"
    ),
}
PLACES = {
    name: (module, real or name)
    for module, names in NAMES.items()
    for name, _, real in (one.partition("=") for one in names.split())
}


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(name)
    module, real = PLACES[name]
    try:
        return import_module(module) if real == "*" else getattr(import_module(module), real)
    except AttributeError:
        return import_module(f"{module}.{real}")  # a module that nothing has imported yet
