# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
def down(n)
  return trace if n == 0
  down(n - 1)
end
def blocks(n)
  return down(5000) if n == 0
  [n].each { |m| blocks(m - 1) }
end
blocks(300)
