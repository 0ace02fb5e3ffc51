"""The libraries of the run: how each is installed, which runner asks it, and what it does that tightrope does not."""

from __future__ import annotations

from dataclasses import dataclass

TORCH = ("torch==2.13.0",)  # first, and pinned: an open range pulls gigabytes of CUDA


@dataclass(frozen=True)
class Library:
    """One library in an environment of its own."""

    key: str  # of its environment and of its results
    name: str
    runner: str
    installs: tuple[tuple[str, ...], ...] = ()  # arguments of `pip install`, in turn
    note: str = ""  # what installing it takes
    beyond: tuple[str, ...] = ()  # what it does that tightrope does not, with where it says so


LIBRARIES = (
    Library("tightrope", "tightrope", "runner_tightrope.py", note="as it stands in this repository"),
    Library(
        "scope_rl", "SCOPE-RL", "runner_scope_rl.py", (TORCH, (*TORCH, "scope-rl==0.2.1")),
        note="installs as it is, torch pinned",
        beyond=(
            "marginal importance weights by minimax and augmented-Lagrangian learning "
            "(`scope_rl.ope.weight_value_learning`)",
            "continuous actions of a deterministic candidate by a kernel (`scope_rl.ope.continuous`)",
            "data sets made from a Gymnasium environment and policies trained on them "
            "(`SyntheticDataset`, `TrainCandidatePolicies`)",
            "choosing among policies, and judging how well estimators choose (`OffPolicySelection`)",
        ),
    ),
    Library(
        "rllib", "RLlib", "runner_rllib.py", (TORCH, (*TORCH, "ray[rllib]==2.60.0")),
        note="installs as it is, torch pinned; the estimators are those of the old API stack, which this "
        "version still ships",
        beyond=(
            "estimates on data that Ray spreads over machines (`estimate_on_dataset`, for single steps)",
            "trains the policies themselves, offline and online",
        ),
    ),
    Library(
        "offline_rl_ope", "offline_rl_ope", "runner_offline_rl_ope.py",
        (TORCH, (*TORCH, "offline-rl-ope==7.0.0"), ("jaxtyping==0.3.11", "typeguard==2.13.3", "pandas==3.1.1")),
        note="imports `jaxtyping`, `typeguard` and `pandas`, which it does not ask pip for; installed beside it",
        beyond=(
            "metrics of a d3rlpy policy at every epoch of its training (`offline_rl_ope.api.d3rlpy`)",
            "propensity models by torch networks, also for continuous actions "
            "(`offline_rl_ope.PropensityModels.torch`)",
        ),
    ),
    Library(
        "d3rlpy", "d3rlpy", "runner_d3rlpy.py", (TORCH, (*TORCH, "d3rlpy==2.8.1")),
        note="installs as it is, torch pinned",
        beyond=(
            "fitted Q evaluation by deep networks, with images as observations "
            "(`d3rlpy.ope.FQE`, `PixelEncoderFactory`)",
            "trains offline policies: CQL, IQL, TD3+BC, Decision Transformer and others (`d3rlpy.algos`)",
        ),
    ),
    Library(
        "obp", "Open Bandit Pipeline", "runner_obp.py",
        (
            TORCH,
            ("--no-deps", "--ignore-requires-python", "obp==0.5.7"),
            ("numpy==1.23.5", "pandas==1.5.2", "scikit-learn==1.1.3", "scipy==1.9.3", "seaborn==0.11.2",
             "matplotlib<3.9", "tqdm", "PyYAML==6.0.1", "Pillow"),
        ),
        note="`pip install obp` fails on Python 3.11: 0.5.7 asks for Python below 3.11, and older ones build PyYAML "
        "5.4.1, which fails (`AttributeError: 'build_ext' object has no attribute 'cython_sources'`). Installed "
        "without its dependencies, then with its own pins of numpy, pandas, scikit-learn and scipy, and "
        "torch 2.13.0 instead of 1.12",
        beyond=(
            "rankings and slates (`obp.ope.SlateIndependentIPS`, `SlateCascadeDoublyRobust` and others)",
            "action embeddings (`obp.ope.MarginalizedInverseProbabilityWeighting`)",
            "continuous actions by a kernel (`obp.ope.KernelizedDoublyRobust`)",
            "tuning of clipping and shrinkage by an estimate of the mean squared error (`obp.ope.DoublyRobustTuning`)",
            "learners of bandit policies, and the Open Bandit Dataset (`obp.policy`, `obp.dataset.OpenBanditDataset`)",
        ),
    ),
)  # fmt: skip
