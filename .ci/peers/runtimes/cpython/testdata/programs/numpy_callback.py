# SPDX-License-Identifier: Apache-2.0
import numpy

import truth


def each(value):
    if value == 2:
        truth.end()
    return value


def rows(row):
    return numpy.vectorize(each)(row).sum()


print(numpy.apply_along_axis(rows, 0, numpy.arange(4).reshape(2, 2)))
