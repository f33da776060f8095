"""A report: one view, filtered, grouped, ordered. Called, it is the function ``tracedb.report.relation.report``."""

import sys

from tracedb.report.callable_module import CallableModule

sys.modules[__name__].__class__ = CallableModule
