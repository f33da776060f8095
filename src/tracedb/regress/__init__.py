"""Times of operators learned from samples: fit, judge, predict."""

from tracedb.regress.model import Model, Prediction, Target
from tracedb.regress.model_folder import Models, load

__all__ = ["Model", "Models", "Prediction", "Target", "load"]
