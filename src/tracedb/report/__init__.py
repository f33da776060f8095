"""Reports: one view, filtered, grouped and ordered.

The package is also the function ``tracedb.report()``: see ``callable_module`` and ``relation``.
"""

import sys

from tracedb.report.callable_module import CallableModule

sys.modules[__name__].__class__ = CallableModule
