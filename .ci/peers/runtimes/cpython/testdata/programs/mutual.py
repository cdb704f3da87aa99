# SPDX-License-Identifier: Apache-2.0
import truth


class Even:
    @staticmethod
    def check(n):
        return True if n == 0 else Odd().check(n - 1)


class Odd:
    def check(self, n):
        if n == 1:
            truth.end()
        return Even.check(n - 1)


Even.check(60)
