# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
def inner(f)
  Fiber.new do
    f.resume
    Fiber.yield 1
  end.resume
end
f = Fiber.new do
  e = Enumerator.new { |y| 3.times { |i| y << i; deep(i) } }
  def deep(i)
    trace if i == 1
  end
  3.times { e.next }
end
inner(f)
