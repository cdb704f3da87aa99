# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
def outer
  catch(:done) do
    loop do
      e = [1, 2].each
      e.next
      5.step(7) { |x| 1.step(by: 2, to: 3) { |y| tap { |z| then_do { trace } } } }
    end
  end
end
def then_do
  1.then { |x| yield }
end
outer
