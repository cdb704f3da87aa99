# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
def leaf(n, last); n == last ? trace : n + 1; end
def middle(n, last); leaf(n, last); end
def outer(count); i = 0; while i <= count; i = middle(i, count); end; end
200.times { outer2 = 1; [1].each { |x| middle(1, 2) } }
outer(100_000)
