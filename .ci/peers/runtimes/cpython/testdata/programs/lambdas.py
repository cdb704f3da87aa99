# SPDX-License-Identifier: Apache-2.0
import truth

stop = lambda value: truth.end() or value
print(sorted([3, 1, 2], key=lambda v: next(filter(lambda w: stop(w), map(lambda u: u + 1, [v])))))
