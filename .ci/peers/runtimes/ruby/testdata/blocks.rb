# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class Foo
  def bar(n)
    if n == 0
      [1].each do |x|
        { a: 1 }.each_pair do |k, v|
          [[3]].map { |(y)| [y].inject(0) { |a, b| [2, 1].each_with_index { |q, i| trace } } }
        end
      end
    else
      bar(n - 1)
    end
  end

  def self.start; new.bar(3); end
end
1.times { 3.upto(4) { Foo.start } }
