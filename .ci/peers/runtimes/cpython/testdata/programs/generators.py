# SPDX-License-Identifier: Apache-2.0
import truth


def numbers(n):
    for i in range(n):
        if i == 3:
            truth.end()
        yield i


def squares(source):
    for number in source:
        yield number * number


def delegate():
    result = yield from squares(numbers(5))
    return result


print(list(delegate()))
