"""Policies of other libraries, and of files and modules that the user names. Importing this package registers them."""

from tightrope.adapters.acting import from_actor
from tightrope.adapters.functions import StatePolicy, from_function
from tightrope.adapters.greedy import greedy
from tightrope.adapters.load import from_name, load_object, load_policy
from tightrope.adapters.onnx_files import onnx_policy
from tightrope.adapters.scikit_learn import from_classifier
from tightrope.adapters.soften import from_learner, softened
from tightrope.adapters.table_files import from_nested, from_rows
from tightrope.adapters.torch_modules import from_module, torch_policy
from tightrope.base.policy import ADAPTERS

ADAPTERS[:] = [
    from_name,
    from_rows,
    from_nested,
    from_classifier,
    from_learner,
    from_actor,
    from_module,
    from_function,
]

__all__ = ["StatePolicy", "greedy", "load_object", "load_policy", "onnx_policy", "softened", "torch_policy"]
