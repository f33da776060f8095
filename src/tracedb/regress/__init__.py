"""Models of operator time, by regression on measured samples: fit, evaluate, predict."""

from tracedb.regress.model import Model, Prediction, Target
from tracedb.regress.model_folder import Models, load

__all__ = ["Model", "Models", "Prediction", "Target", "load"]
