"""Odd inputs, one table over all commands: each is refused in a line that names the cure, or done; never a traceback.

A case is a command line, the promised exit code, and words of the message. The files that it names are made by
`odd_files`. What closes streams or has a console of another kind runs in a fork of this process, all else in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from forks import Left, called, forked, warm
from odd_files import FILES, put


@dataclass(frozen=True)
class Case:
    """A command line, its exit code, and words of its message; `>` in the line stands for a model that is not there and
    a folder for the result, NESTED for many brackets, DIGITS for a number of 400 digits."""

    line: str
    code: int
    says: str
    stdin: bytes = b""
    environment: dict[str, str] = field(default_factory=dict)
    closed: tuple[int, ...] = ()
    unread: bool = False

    @property
    def words(self) -> list[str]:
        """The words of the command line."""
        line = self.line.replace(">", "--model NOWHERE --out OUT").replace("NESTED", "min_k(" * 500)
        return line.replace("DIGITS", "9" * 400).split(" ")

    @property
    def name(self) -> str:
        more = [*self.environment.values(), *(f"{number} closed" for number in self.closed)]
        more += ["nobody reads"] if self.unread else []
        return " ".join([self.line, *more, *(["from a pipe"] if self.stdin else [])])


CASES: list[tuple[str, int, str]] = [
    ("score good.jsonl > --text-column body", 2, "body"),
    ("score good.jsonl --model nofiles --out OUT", 2, "config.json"),
    ("score good.jsonl --model nobody/nothing --out OUT", 2, "hub"),
    ("score good.jsonl > --scores min_j", 2, "min_k"),
    ("score good.jsonl > --scores min_k(q=1)", 2, "unexpected keyword argument 'q'"),
    ("score good.jsonl > --scores min_k(k=2)", 2, "at most 1"),
    ("score good.jsonl > --scores min_k(k='a')", 2, "must be a number"),
    ("score good.jsonl > --scores __import__('os').system('true')", 2, "is not a score"),
    ("score good.jsonl > --scores min_k(k=(lambda:1)())", 2, "is not a score"),
    ("score good.jsonl > --scores ,", 2, "is not a score"),
    ("score good.jsonl > --scores dc_pdd", 2, "pretrace count"),
    ("score good.jsonl > --scores ref", 2, "--reference-model"),
    ("score good.jsonl > --dtype int3", 2, "int3"),
    ("score good.jsonl > --max-tokens 0", 2, "max-tokens"),
    ("score good.jsonl > --scroes loss", 2, "--scores"),
    ("scroe good.jsonl >", 2, "score"),
    ("score good.jsonl --model MODEL --out OUT --start often", 2, "often"),
    (
        "score absent.jsonl >",
        2,
        "arxiv_mia, arxivtection, bookmia, booktection, ccnewspdd, checkmia, copyright_traps",
    ),
    ("score empty.jsonl >", 2, "give a source with at least one"),
    ("score blank.txt >", 2, "give a source with at least one"),
    ("score list.jsonl >", 2, 'write each text as {"text"'),
    ("score string.jsonl >", 2, 'write each text as {"text"'),
    ("score broken.jsonl >", 2, "mend it or take it out"),
    ("score deep.jsonl >", 2, "mend it or take it out"),
    ("score deep.json >", 2, "mend it or fetch it again"),
    ("score digits.jsonl >", 2, "mend it or take it out"),
    ("score null.jsonl >", 2, "mend the row or take it out"),
    ("score number.jsonl >", 2, "mend the row or take it out"),
    ("score nothing.jsonl >", 2, "download it on a machine that reaches the hub and pass the folder"),
    ("score twice.jsonl >", 2, "name another id column"),
    ("score labels.jsonl >", 2, "An empty label column name leaves the column out"),
    ("score untexted.jsonl >", 2, "name the one that holds the text"),
    ("score listed.jsonl >", 2, "row 0 (line 1) holds [0] in the column 'id', where a name or a number"),
    ("score utf16.jsonl >", 2, "download it on a machine that reaches the hub"),
    ("score open.csv >", 2, "look at the quotes of the row that starts there"),
    ("score ragged.csv >", 2, "1 fields, and the header names 2"),
    ("score twice.csv >", 2, "rename all but one"),
    ("score header.csv >", 2, "give a source with at least one"),
    ("score broken.parquet >", 2, "make it anew"),
    ("score farid.parquet >", 2, "make it a column of strings"),
    ("score broken.jsonl.gz >", 2, "its gz stream is damaged"),
    ("score cut.jsonl.gz >", 2, "its gz stream is cut off; fetch it again"),
    ("score broken.pdf >", 2, "leave it out"),
    ("score broken.docx >", 2, "leave it out"),
    ("score empty.docx >", 2, "leave it out"),
    ("score feed.xml >", 2, "save the feed again"),
    ("score bomb.xml >", 2, "take that line out"),
    ("score unknown.xyz >", 2, "a folder of such files"),
    ("score pipes >", 2, "take it out of the folder"),
    ("score documentpipes >", 2, "take it out of the folder"),
    ("score nofiles >", 2, "another folder"),
    ("score readme >", 2, "another folder"),
    (
        "score loop >",
        2,
        "arxiv_mia, arxivtection, bookmia, booktection, ccnewspdd, checkmia, copyright_traps",
    ),
    ("score loops >", 2, "Too many levels of symbolic links"),
    ("score hub: >", 2, "write hub:NAME[:CONFIG][:SPLIT]"),
    ("score hub:a:b:c:d >", 2, "write hub:NAME[:CONFIG][:SPLIT]"),
    (
        "score wikimia( >",
        2,
        "arxiv_mia, arxivtection, bookmia, booktection, ccnewspdd, checkmia, copyright_traps",
    ),
    ("score stdlib(min_chars='x') >", 2, "min_chars must be a whole number, found 'x'"),
    ("score escape.csv >", 2, "download it on a machine that reaches the hub and pass the folder"),
    ("score escape.csv > --text-column \x1b[2Jx", 2, "it has 'text', '\\x1b[31mid\\x1b[0m'"),
    (
        "score escape.jsonl > --id-column text --label-column id",
        2,
        "An empty label column name leaves the column out",
    ),
    ("evaluate labels.jsonl >", 2, "An empty label column name leaves the column out"),
    ("evaluate members.jsonl >", 2, "evaluation needs both classes"),
    ("evaluate unlabelled.jsonl >", 2, "use `pretrace score`"),
    (
        "score \x1b[31m.jsonl >",
        2,
        "arxiv_mia, arxivtection, bookmia, booktection, ccnewspdd, checkmia, copyright_traps",
    ),
    ("build dated early.jsonl --cutoff 2016-01-01 --date-column date --out made.jsonl", 0, ""),
    ("build dated late.jsonl --cutoff 2016-01-01 --date-column date --out made.jsonl", 0, ""),
    ("build dated month.jsonl --cutoff 2016-01-01 --date-column date --out made.jsonl", 0, ""),
    (
        "build dated first.jsonl --cutoff 0001-01-02 --margin-days 5 --date-column date --out made.jsonl",
        2,
        "a day such as 2023-03-01",
    ),
    (
        "build dated last.jsonl --cutoff 9999-12-30 --margin-days 5 --date-column date --out made.jsonl",
        2,
        "a day such as 2023-03-01",
    ),
    (
        "build dated far.parquet --cutoff 2016-01-01 --date-column date --out made.jsonl",
        2,
        "make it a column of strings",
    ),
    (
        "build dated fardays.parquet --cutoff 2016-01-01 --date-column date --out made.jsonl",
        2,
        "make it a column of strings",
    ),
    (
        "build dated zone.parquet --cutoff 2016-01-01 --date-column date --out made.jsonl",
        2,
        "make it a column of strings",
    ),
    (
        "build dated instant.jsonl --cutoff 2016-01-01 --date-column date --out made.jsonl",
        2,
        "name another column with --date-column",
    ),
    (
        "build dated good.jsonl --cutoff 9999-12-31 --date-column date --out made.jsonl",
        2,
        "cutoff wants a day such as 2023-03-01, found '9999-12-31'",
    ),
    (
        "build dated good.jsonl --cutoff 0001-01-01 --date-column date --out made.jsonl",
        2,
        "cutoff wants a day such as 2023-03-01, found '0001-01-01'",
    ),
    (
        "build dated good.jsonl --cutoff 2016-01-01 --margin-days 99999999 --date-column date --out made.jsonl",
        2,
        "a margin of 99999999 days reaches before all dates",
    ),
    ("ask early.jsonl", 4, ""),
    ("ask late.jsonl", 4, ""),
    ("ask month.jsonl", 4, ""),
    ("ask instant.jsonl", 4, ""),
    ("ask far.parquet", 2, "make it a column of strings"),
    ("ask fardays.parquet", 2, "make it a column of strings"),
    ("ask zone.parquet", 2, "make it a column of strings"),
    ("ask pipes", 2, "take it out of the folder"),
    (
        "ask absent.jsonl",
        2,
        "arxiv_mia, arxivtection, bookmia, booktection, ccnewspdd, checkmia, copyright_traps",
    ),
    ("score good.jsonl > --config deep.toml", 2, "an option has one value"),
    ("score good.jsonl > --config tables.toml", 2, "an option has one value"),
    ("score good.jsonl > --config no.toml", 2, "Invalid value (at line 1, column 5)"),
    ("score good.jsonl > --config latin.toml", 2, "it is not valid UTF-8"),
    (
        "score good.jsonl > --config unknown.toml",
        2,
        "there are address, allow-pickle, chat, counts, device, device-map, dry-run,",
    ),
    (
        "score good.jsonl > --config number.toml",
        2,
        "Input should be less than or equal to 9223372036854775807. See pretrace",
    ),
    (
        "score good.jsonl > --config nan.toml",
        2,
        "Input should be a valid integer, unable to parse string as an integer",
    ),
    (
        "score good.jsonl > --config date.toml",
        2,
        "Input should be a valid integer, unable to parse string as an integer",
    ),
    ("score good.jsonl > --config digits.toml", 2, "use sys.set_int_max_str_digits() to increase the limit"),
    ("score good.jsonl > --config absent.toml", 2, "No such file or directory"),
    ("score good.jsonl > --config pipes", 2, "Is a directory"),
    ("score good.jsonl > --config pipe.jsonl", 2, "it is a pipe or a device, and no file"),
    ("plant good.jsonl > --max-tokens DIGITS", 2, "less than or equal to 9223372036854775807"),
    ("serve --max-upload DIGITS", 2, "less than or equal to"),
    ("score good.jsonl > --requests DIGITS", 2, "less than or equal to"),
    ("score good.jsonl > --plugin raises.py", 2, "no \\x1b[31mluck (raises.py, line 1)"),
    ("score good.jsonl > --plugin leaves.py", 2, "0 (leaves.py, line 2)"),
    ("score good.jsonl > --plugin generates.py", 2, "no (generates.py, line 1)"),
    ("score good.jsonl > --plugin recurses.py", 2, "maximum recursion depth exceeded (recurses.py, line 1)"),
    ("score good.jsonl > --plugin syntax.py", 2, "invalid syntax (syntax.py, line 1)"),
    ("score good.jsonl > --plugin nothing.py", 2, "put @scores.add('NAME') above a score"),
    (
        "score good.jsonl > --plugin nul.py",
        2,
        "source code string cannot contain null bytes (None, line None)",
    ),
    ("score good.jsonl > --plugin latin.py", 2, "invalid start byte (latin.py, line 1)"),
    ("score good.jsonl > --plugin deep.py", 2, "too many nested parentheses (deep.py, line 1)"),
    ("score good.jsonl > --plugin absent.py", 2, "give the path of a Python file"),
    ("score good.jsonl > --plugin pipes", 2, "give the path of a Python file"),
    ("score good.jsonl > --plugin pipe.jsonl", 2, "give the path of a Python file"),
    ("score good.jsonl > --plugin loop", 2, "give the path of a Python file"),
    ("mark canaries good.jsonl > --level 5e-324", 2, "--level lies between 0 and 1, not below 1e-9"),
    ("list --plugin leaves.py", 2, "0 (leaves.py, line 2)"),
    ("score good.jsonl > --plugin leaves_later.py --scores mine", 2, "nothing was written"),
    (
        "score good.jsonl > --plugin raises_later.py --scores mine",
        2,
        "raises_later.py failed in line 3: RuntimeError: no luck",
    ),
    ("score good.jsonl > --scores dc_pdd --counts junk.npz", 2, "make it again with pretrace count"),
    ("score good.jsonl > --scores dc_pdd --counts floats.npz", 2, "make it again with pretrace count"),
    ("score good.jsonl > --scores dc_pdd --counts infinite.npz", 2, "make it again with pretrace count"),
    (
        "score good.jsonl > --scores dc_pdd --counts infinite_texts.npz",
        2,
        "make it again with pretrace count",
    ),
    ("score good.jsonl > --scores dc_pdd --counts nan_texts.npz", 2, "make it again with pretrace count"),
    ("score good.jsonl > --scores dc_pdd --counts negative.npz", 2, "make it again with pretrace count"),
    (
        "score good.jsonl > --scores dc_pdd --counts negative_texts.npz",
        2,
        "make it again with pretrace count",
    ),
    ("score good.jsonl > --scores dc_pdd --counts overflow.npz", 2, "make it again with pretrace count"),
    ("score good.jsonl > --scores dc_pdd --counts square.npz", 2, "make it again with pretrace count"),
    ("score good.jsonl > --scores dc_pdd --counts none.npz", 2, "make it again with pretrace count"),
    ("score good.jsonl > --scores dc_pdd --counts other.npz", 2, "give the right file"),
    ("score good.jsonl > --scores dc_pdd --counts list.npz", 2, "give the right file"),
    ("score good.jsonl > --scores dc_pdd --counts absurd.npz", 2, "make it again with pretrace count"),
    ("score good.jsonl > --scores dc_pdd --counts pipe.npz", 2, "check the name"),
    ("score good.jsonl > --scores dc_pdd --counts deep.npz", 2, "make it again with pretrace count"),
    ("score good.jsonl > --scores dc_pdd --counts absent.npz", 2, "check the name"),
    ("score good.jsonl > --scores dc_pdd --counts pipes", 2, "check the name"),
    (
        "score good.jsonl > --scores dc_pdd --counts zero.npz",
        2,
        "download it on a machine that reaches the hub and pass the folder",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned odd_kind",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned no_kind",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned other_kind",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned odd_layers",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned odd_pattern",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned no_rank",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned minus_rank",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned word_rank",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned absurd_rank",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned odd_shapes",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned odd_card",
        2,
        "tune it again with `pretrace tune`",
    ),
    ("score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned odd_method", 2, "tune it again"),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned odd_files",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned cardless",
        2,
        "give the folder that `pretrace tune` wrote",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned cardpipe",
        2,
        "tune it again with `pretrace tune`",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned absent",
        2,
        "give the folder that `pretrace tune` wrote",
    ),
    (
        "score good.jsonl --model MODEL --out OUT --scores fsd(ppl) --tuned good.jsonl",
        2,
        "give the folder that `pretrace tune` wrote",
    ),
    ("runs report deep_run", 2, "run the detection again"),
    ("runs report nan_run", 2, "run the detection again"),
    ("runs report digits_run", 2, "run the detection again"),
    ("runs report list_run", 2, "run the detection again"),
    ("runs report newer_run", 2, "upgrade"),
    ("runs report other_run", 2, "its run.json was written by something else"),
    ("runs report word_run", 2, "its run.json was written by something else"),
    ("runs report files_run", 2, "run the detection again"),
    ("runs report path_run", 2, "run the detection again"),
    ("runs report latin_run", 2, "run the detection again"),
    ("runs report pipe_run", 2, "it is a pipe or a device, and no file"),
    ("runs report cut_run", 2, "run the detection again"),
    ("runs report absent", 2, "give a folder that --out wrote"),
    ("runs report good.jsonl", 2, "give the folder that --out wrote"),
    ("runs report nofiles", 2, "give a folder that --out wrote"),
    ("runs verify deep_run", 2, "run the detection again"),
    ("runs verify path_run", 2, ""),
    ("runs verify pipe_run", 2, "it is a pipe or a device, and no file"),
    ("runs verify cut_run", 2, ""),
    ("runs verify good.jsonl", 2, "give the folder that --out wrote"),
    ("runs again digits_run", 2, "run the detection again"),
    ("runs again pipe_run", 2, "it is a pipe or a device, and no file"),
    ("runs again cut_run", 2, "Give the command itself"),
    ("runs again absent", 2, "give a folder that --out wrote"),
    ("runs again given_run", 2, "See pretrace score --help"),
    ("runs again odd_given_run", 2, "odd_given_run was made by 'nope', which is no command of pretrace"),
    ("runs compare run cut_run --out OUT", 2, "run the detection again"),
    ("runs compare run deep_run --out OUT", 2, "run the detection again"),
    ("runs compare run pipe_run --out OUT", 2, "it is a pipe or a device, and no file"),
    ("runs compare run absent --out OUT", 2, "give a folder that --out wrote"),
    ("runs compare run escape.csv --out OUT", 2, "give the folder that --out wrote"),
    ("runs merge OUT --parts parts", 2, "give the --out that its workers were given"),
    ("runs merge OUT --parts pipes", 2, "give the --out that its workers were given"),
    (
        "mark check emptyseal.json --commitment 0000000000000000000000000000000000000000000000000000000000000000 >",
        2,
        "Give the file that was written with this commitment, unchanged",
    ),
    (
        "mark check listseal.json --commitment 0000000000000000000000000000000000000000000000000000000000000000 >",
        2,
        "Give the file that was written with this commitment, unchanged",
    ),
    (
        "mark check deepseal.json --commitment 0000000000000000000000000000000000000000000000000000000000000000 >",
        2,
        "Give the file that was written with this commitment, unchanged",
    ),
    (
        "mark check oddseal.json --commitment 0000000000000000000000000000000000000000000000000000000000000000 >",
        2,
        "Give the file that was written with this commitment, unchanged",
    ),
    (
        "mark check absent --commitment 0000000000000000000000000000000000000000000000000000000000000000 >",
        2,
        "check the path",
    ),
    (
        "mark check pipes --commitment 0000000000000000000000000000000000000000000000000000000000000000 >",
        2,
        "check the path",
    ),
    ("mark check emptyseal.json --commitment words.txt >", 2, "'words.txt' holds none"),
    ("mark texts good.jsonl --out OUT --sealed S", 2, "found none"),
    (
        "mark texts good.jsonl --out OUT --sealed S --variant-column absent",
        2,
        "its first row has 'id', 'text', 'label', 'group', 'date', 'draft', 'va",
    ),
    ("mark texts good.jsonl --out OUT --sealed S --variant-column text", 2, "leave the text out"),
    (
        "mark texts good.jsonl --out OUT --sealed good.jsonl --variant-column variant",
        2,
        "choose another --sealed",
    ),
    (
        "mark canaries letters.jsonl > --pattern (a|a)*b",
        2,
        "name strings that were drawn at random with --pattern",
    ),
    (
        "mark canaries letters.jsonl > --pattern (a+)+$",
        2,
        "Write it without one repetition in another, such as [a-z]+ for ([a-z]+",
    ),
    ("mark canaries letters.jsonl > --pattern (", 2, "missing ) at position 1"),
    ("mark canaries letters.jsonl > --pattern a*", 2, "say how long a string is"),
    ("mark canaries letters.jsonl > --pattern [[:nope:]]", 2, "unknown property at position 9"),
    ("mark canaries letters.jsonl > --pattern a{99999999999}", 2, "100,000 is the most: repeat less often"),
    ("mark canaries letters.jsonl > --pattern \\", 2, "bad escape (end of pattern) at position 1"),
    ("audit good.jsonl > --heldout empty.jsonl", 2, "give a source with at least one"),
    ("audit good.jsonl > --heldout pipes", 2, "take it out of the folder"),
    ("flag good.jsonl > --nonmembers broken.parquet", 2, "make it anew"),
    ("flag good.jsonl > --nonmembers pipes", 2, "take it out of the folder"),
    (
        "samples log.jsonl --nonmembers good.jsonl >",
        2,
        "run the evaluation again with lm-eval 0.4.5 or later, --log_samples an",
    ),
    (
        "samples logs --nonmembers good.jsonl >",
        2,
        "run the evaluation again with lm-eval 0.4.5 or later, --log_samples an",
    ),
    (
        "samples pipes --nonmembers good.jsonl >",
        2,
        "run the evaluation again with lm-eval 0.4.5 or later, --log_samples an",
    ),
    (
        "samples deep.json --nonmembers good.jsonl >",
        2,
        "run the evaluation again with lm-eval 0.4.5 or later, --log_samples an",
    ),
    ("samples absent --nonmembers good.jsonl >", 2, "give what lm_eval wrote to --output_path"),
    ("samples pipe.jsonl --nonmembers good.jsonl >", 2, "give what lm_eval wrote to --output_path"),
    ("recite empty.jsonl >", 2, "give a source with at least one"),
    ("tune pipes >", 2, "take it out of the folder"),
    ("plant null.jsonl --out OUT", 2, "mend the row or take it out"),
    (
        "count pipes --model NOWHERE --out made.npz",
        2,
        "download it on a machine that reaches the hub and pass the folder",
    ),
    ("count good.jsonl --model NOWHERE --out made.txt", 2, "--out made.npz, found made.txt"),
    ("build quality good.jsonl pipes --embeddings none", 2, "take it out of the folder"),
    ("build quality good.jsonl empty.jsonl --embeddings none", 2, "give a source with at least one"),
    ("build gap good.jsonl null.jsonl", 2, "mend the row or take it out"),
    ("build patents page --out made.jsonl", 2, "ask for fewer --words"),
    ("build patents pipes --out made.jsonl", 2, "take it out of the folder"),
    ("build patents nofiles --out made.jsonl", 2, "another folder"),
    ("build patents good.jsonl --out made.jsonl", 2, "ask for fewer --words"),
    ("build patents page --dates dates.csv --out made.jsonl", 2, "name another one"),
    (
        "build ccnews --members good.jsonl --nonmembers pipes --transform mask --out OUT",
        2,
        "take it out of the folder",
    ),
    (
        "build ccnews --members good.jsonl --nonmembers good.jsonl --transform prompt --rewriter server:x --out OUT",
        2,
        "--texts 0",
    ),
    (
        "score good.jsonl > --seed 99999999999999999999",
        2,
        "Input should be less than or equal to 9223372036854775807. See pretrace",
    ),
    (
        "score good.jsonl > --scores NESTED",
        2,
        "write a name or a call with literal values, such as name or name(k=0.1",
    ),
    (
        "score good.jsonl > --scores min_k(k=nan)",
        2,
        "no score is called 'nan'; there are",
    ),
    ("score good.jsonl > --scores min_k(k=1e999)", 2, "found inf"),
    ("score good.jsonl > --shard 1/0", 2, "the first number goes from 1 to the second"),
    (
        "score good.jsonl > --shard \u0661/\u0662",
        2,
        "download it on a machine that reaches the hub and pass the folder",
    ),
    (
        "score good.jsonl --out OUT --model \x1b[31mmodel",
        2,
        "'\\x1b[31mmodel' is neither a folder, a .gguf file, 'smollm2' nor a hub",
    ),
    ("score good.jsonl --out OUT --model completions:http://[", 2, '--scores "loss,ppl,zlib,min_k"'),
    (
        "score good.jsonl --out OUT --model vllm:http://localhost:99999999",
        2,
        '--scores "loss,ppl,zlib,min_k"',
    ),
    ("serve --port 99999999", 2, "Input should be less than or equal to 65535. See pretrace serve --help"),
    ("cache clear", 0, ""),
    ("ask good.jsonl", 4, ""),
    ("good.jsonl", 4, ""),
    ("ask - --model NOWHERE", 2, "give texts as a file or a folder"),
    ("ask empty.jsonl --model NOWHERE", 2, ""),
    ("ask good.jsonl --model NOWHERE", 2, "download it on a machine that reaches the hub"),
    ("ask good.jsonl --corpus NOWHERE", 2, ""),
    ("recite good.jsonl > --access odd", 2, "--access is weights or text, found 'odd'"),
    ("recite good.jsonl > --draws 99999999999", 2, "less than or equal to 10000000"),
    ("recite good.jsonl > --power-method odd", 2, "--power-method is full or lora, found 'odd'"),
    ("recite good.jsonl > --draws 99999999999", 2, "less than or equal to 10000000"),
    ("audit good.jsonl --heldout good.jsonl > --power-method odd", 2, "--power-method is full or lora"),
    ("flag good.jsonl --nonmembers good.jsonl > --power-method odd", 2, "--power-method is full or lora"),
    ("evaluate good.jsonl > --resamples 99999999999", 2, "less than or equal to 1000000"),
    ("recite pipes >", 2, "take it out of the folder"),
    ("recite good.jsonl >", 2, "A window takes 400 bytes"),
    ("recite good.jsonl > --level nan", 2, "--level lies between 0 and 1"),
    ("evaluate good.jsonl > --labels absent", 2, "--labels takes the --out of `pretrace scan`"),
    ("evaluate good.jsonl > --labels run", 2, "--labels takes the --out of `pretrace scan`"),
    ("evaluate good.jsonl > --labels pipe_run", 2, "--labels takes the --out of `pretrace scan`"),
    ("evaluate good.jsonl > --labels deep_scan", 2, "nested too deeply"),
    ("evaluate good.jsonl > --labels pipe_scan", 2, "--labels takes the --out of `pretrace scan`"),
    ("evaluate good.jsonl > --labels cut_scan", 2, "result.json is damaged"),
    ("runs verify pipe_scan", 2, "it is a pipe or a device, and no file"),
    ("runs again deep_scan", 2, "nested too deeply"),
    (
        "flag good.jsonl --nonmembers good.jsonl > --found absent",
        2,
        "--found takes the --out of `pretrace scan`",
    ),
    (
        "flag good.jsonl --nonmembers good.jsonl > --found pipe_scan",
        2,
        "--found takes the --out of `pretrace scan`",
    ),
    ("audit good.jsonl --heldout good.jsonl > --found run", 2, "--found takes the --out of `pretrace scan`"),
    ("audit good.jsonl --heldout good.jsonl > --found cut_scan", 2, "result.json is damaged"),
    ("scan good.jsonl --corpus cutcorpus --out OUT --near", 4, "not all of the corpus"),
    ("scan good.jsonl --corpus cutcorpus --out OUT", 4, "not all of the corpus"),
    ("scan good.jsonl --corpus cutcorpus --out OUT --match odd", 2, "--match is folded or exact"),
    ("scan blank.txt --corpus corpus --out OUT", 2, "give a source with at least one"),
    ("ask pipe.jsonl --corpus corpus", 2, "give texts as a file or a folder"),
    ("ask good.jsonl --model NOWHERE --unseen pipe.jsonl", 2, "give texts as a file or a folder"),
    ("ask good.jsonl --corpus corpuspipes", 2, "take it out of the folder"),
    ("ask --yes --corpus corpus -- -dash.jsonl", 4, "runs pretrace scan ./-dash.jsonl"),
    ("ask -- -dash.jsonl", 4, "./-dash.jsonl"),
    ("scan good.jsonl --corpus corpuspipes --out OUT", 2, "take it out of the folder"),
    ("scan good.jsonl --corpus github://x --out OUT", 2, "github://x cannot be listed"),
    ("scan good.jsonl --corpus corpus --out OUT --clean OUT", 2, "name two folders"),
    ("scan good.jsonl --corpus corpus --out OUT --clean OUT/clean", 2, "name two folders"),
    ("scan good.jsonl --corpus corpus --out OUT/made --clean OUT", 2, "name two folders"),
    ("\x1b[31mcommand", 2, "See pretrace --help"),
]
"""A command line, its exit code, and words of its message; `>` stands for a model that is not there and a folder for
the result."""
CONSOLES: list[tuple[str, int, str]] = [
    ("list", 0, ""),
    ("--help", 0, ""),
    ("score --help", 0, ""),
    ("audit --help-all", 0, ""),
    ("ask good.jsonl", 4, ""),
    ("list --json", 0, ""),
    (
        "score \u4e2d\u6587.jsonl >",
        2,
        "arxiv_mia, arxivtection, bookmia, booktection, ccnewspdd, checkmia, copyright_traps",
    ),
    ("cache info", 0, ""),
    ("runs verify run", 2, "This run is not as it was recorded: numbers"),
    ("build quality good.jsonl good.jsonl --embeddings none", 0, ""),
    (
        "build dated words.jsonl --date-column date --cutoff 2016-01-01 --out made.jsonl",
        2,
        "name another column with --date-column",
    ),
]
"""The same for consoles that are not UTF-8."""
CLOSED: list[tuple[str, int, str]] = [
    ("list", 0, ""),
    ("list --json", 0, ""),
    ("score empty.jsonl >", 2, "give a source with at least one"),
    ("ask good.jsonl", 4, ""),
    ("score empty.jsonl >", 2, ""),
]
"""The same with closed standard streams."""
OTHERS: list[Case] = [
    Case("score - >", 2, "lead the texts here with |", closed=(0,)),
    Case(
        "score - >",
        2,
        "name its encoding, as in --encoding",
        stdin=b"\x00\xff\xfe",
    ),
    Case("show - --model NOWHERE", 2, "lead the texts here with |", closed=(0,)),
    Case("show - --model NOWHERE", 2, "- to read standard input", stdin=b" \n"),
    Case("runs report run", 0, "", environment={"SOURCE_DATE_EPOCH": "x"}),
    Case("runs report run", 0, "", environment={"SOURCE_DATE_EPOCH": "99999999999999999"}),
    Case("runs report run", 0, "", environment={"COLUMNS": "0", "LINES": "x"}),
    Case("list", 0, "", environment={"COLUMNS": "x", "TERM": "\x1b"}),
    Case("cache info", 0, "", environment={"PRETRACE_CACHE": "good.jsonl"}),
    Case("list", 0, "", environment={"PRETRACE_PROGRESS": "good.jsonl"}),
    *(
        Case(line, 0, "", unread=True)
        for line in ("list", "list --json", "--help", "ask good.jsonl", "cache info")
    ),
    Case("scan good.jsonl --corpus corpus --out OUT", 0, "", unread=True),
]
ALL = [
    *(Case(*row) for row in CASES),
    *(Case(*row, environment={"PYTHONIOENCODING": name}) for row in CONSOLES for name in ("ascii", "cp1252")),
    *(Case(*row, closed=closed) for row in CLOSED for closed in ((0,), (1,), (2,), (0, 1, 2))),
    *OTHERS,
]


def made(case: Case, folder: Path, model: Path | None) -> None:
    """The files that a command line names."""
    named = set(case.words)
    if "MODEL" in named and model is not None:
        (folder / "MODEL").symlink_to(model)
    for name, content in FILES.items():
        if name in named or name in case.environment.values():
            put(folder / name, content)
    if "page" in named and "dates.csv" in named:
        put(folder / "dates.csv", FILES["dates.csv"])


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def run(case: Case, folder: Path, model: Path | None) -> tuple[Left, list[str], list[str]]:
    here = folder / "here"
    here.mkdir()
    made(case, here, model)
    before = listing(here)
    environment = {"PRETRACE_CACHE": str(folder / "cache"), **case.environment}
    if case.closed or case.unread or "PYTHONIOENCODING" in environment:
        warm()
        left = forked(
            case.words,
            here,
            stdin=case.stdin,
            environment=environment,
            closed=case.closed,
            unread=case.unread,
        )
    else:
        left = called(case.words, here, stdin=case.stdin, environment=environment)
    return left, before, listing(here)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name.encode("unicode_escape").decode())
def test_odd_input(case: Case, tmp_path: Path, model_folder: Path) -> None:
    left, before, after = run(case, tmp_path, model_folder if "MODEL" in case.words else None)
    said = left.out + left.err
    assert "Traceback" not in said, said
    assert left.code == case.code, (left.code, said)
    assert said == "" or not case.unread, said
    assert not set(said) & {"\x1b", "\x07", "\u202e", "\r"}
    if case.code in (0, 3):
        assert case.says in said, said
    if case.code == 2 and 2 not in case.closed:
        assert after == before

        assert left.err.startswith("pretrace: ") or case.line.startswith("runs verify ")
        assert case.says in said, said
