# SPDX-License-Identifier: Apache-2.0
import contextvars
import logging

import truth

variable = contextvars.ContextVar("variable", default=0)


class Handler(logging.Handler):
    def emit(self, record):
        truth.end()


def inside():
    variable.set(1)
    logging.getLogger("x").warning("text %s", 1)


logging.getLogger().addHandler(Handler())
contextvars.copy_context().run(inside)
