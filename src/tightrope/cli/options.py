"""The options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

# The panels of --help.
CANDIDATE, LOGS, QUESTION = "The policy", "The logs", "The question"
METHODS, OUTPUT = "How it is computed", "What comes out"

Logs = Annotated[
    list[str],
    typer.Argument(
        help="The logs, one row per step: files (.parquet, .csv, .tsv, .jsonl, .feather; text also .gz), a folder or a "
        "pattern of them, - for stdin, an address (s3://...); or a Minari dataset (minari:ID or its folder).",
        show_default=False,
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        help="The candidate: a column of the logs; a table of probabilities (.npy or .npz of shape (states, actions), "
        "file.npz:array, or .csv or .parquet with columns state, action, prob); module:object; an .onnx file; or a "
        "model (Stable-Baselines3 .zip, scikit-learn .joblib or .pkl), which runs code in that file.",
        rich_help_panel=CANDIDATE,
    ),
]
PolicyClass = Annotated[
    str | None,
    typer.Option(
        help="The class of a .zip policy (PPO, A2C, SAC, TD3, DDPG, DQN), if unclear.", rich_help_panel=CANDIDATE
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(help="The policy acts at random with this probability (discrete actions).", rich_help_panel=CANDIDATE),
]
Sigma = Annotated[
    list[float] | None,
    typer.Option(
        help="The policy adds normal noise of this standard deviation (continuous actions); repeat per component.",
        rich_help_panel=CANDIDATE,
    ),
]
Deterministic = Annotated[
    bool,
    typer.Option(
        "--deterministic",
        help="The greedy form of the policy: its most probable action, or its action without the noise. --epsilon and "
        "--sigma then add theirs.",
        rich_help_panel=CANDIDATE,
    ),
]
OnnxOutput = Annotated[
    str | None,
    typer.Option(
        help="What an .onnx policy gives: probabilities, log_probs, logits, or name:kind.", rich_help_panel=CANDIDATE
    ),
]
BehaviorOption = Annotated[
    str,
    typer.Option(
        help="The behaviour policy: logged (behavior_prob), or estimated from the logs: auto, tabular, logistic, "
        "gaussian, or module:object (a behaviour model or a classifier).",
        rich_help_panel=LOGS,
    ),
]
Discount = Annotated[
    float | None,
    typer.Option(
        help="γ, the factor by which a reward one step later counts less. Default: as the file says, or 1.",
        rich_help_panel=LOGS,
    ),
]
Horizon = Annotated[
    int | None,
    typer.Option(help="How many steps count. Default: as the file says, or the longest episode.", rich_help_panel=LOGS),
]
RewardRange = Annotated[
    tuple[float, float] | None,
    typer.Option(help="Lowest and highest possible reward of a step (may be -inf, inf).", rich_help_panel=LOGS),
]
ReturnRange = Annotated[
    tuple[float, float] | None, typer.Option(help="Lowest and highest possible return.", rich_help_panel=LOGS)
]
Incomplete = Annotated[
    Literal["error", "terminate", "drop"],
    typer.Option(
        help="What to do with an episode that is shorter than the horizon and not flagged as terminated.",
        rich_help_panel=LOGS,
    ),
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="Which column plays which role: ROLE=NAME, such as behavior_prob=p or state=age,dose; ROLE= if there is "
        "none. Repeat for several.",
        rich_help_panel=LOGS,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="The column that says whose episode it is (patient, site, day), where those of one resemble each other.",
        rich_help_panel=LOGS,
    ),
]
Strata = Annotated[
    str | None,
    typer.Option(
        help="The column of the parts of the logs that clusters were drawn from, so many from each.",
        rich_help_panel=LOGS,
    ),
]
OneStep = Annotated[
    bool, typer.Option("--one-step", help="Every row is an episode (logs of a bandit).", rich_help_panel=LOGS)
]
MaxStepRatio = Annotated[
    float | None,
    typer.Option(help="No action's importance ratio can exceed this at any step.", rich_help_panel=LOGS),
]
BehaviorPolicy = Annotated[
    str | None,
    typer.Option(help="The policy that made the logs, as --policy takes it.", rich_help_panel=LOGS),
]
Report = Annotated[
    Path | None, typer.Option(help="Also write a report here, one HTML page (.html).", rich_help_panel=OUTPUT)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.", rich_help_panel=OUTPUT)]
Title = Annotated[str | None, typer.Option(help="The report's title.", rich_help_panel=OUTPUT)]
Metric = Annotated[
    str | None,
    typer.Option(help="What a return is, for the report: such as reward, or clicks per visit.", rich_help_panel=OUTPUT),
]
Unit = Annotated[str | None, typer.Option(help="Its unit, for the report: such as €.", rich_help_panel=OUTPUT)]
Confidence = Annotated[
    float, typer.Option(help="The confidence of each bound, between 0.5 and 1.", rich_help_panel=QUESTION)
]
Resamples = Annotated[int, typer.Option(help="Bootstrap replicates.", rich_help_panel=METHODS)]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        help="local; cuda: sums on an NVIDIA GPU; or a dask scheduler (tcp://host:8786). It changes no number.",
        rich_help_panel=METHODS,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="What reading may take, such as 16GB; larger Parquet is kept in files. Default: half of what is free.",
        rich_help_panel=LOGS,
    ),
]
Scratch = Annotated[
    Path | None,
    typer.Option(help="The folder for such files. Default: where temporary files go.", rich_help_panel=LOGS),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", help="Threads; by default one for each core. It changes no number.", rich_help_panel=METHODS
    ),
]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same numbers.", rich_help_panel=METHODS)]
