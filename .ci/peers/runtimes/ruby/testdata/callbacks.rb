# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class Weight
  include Comparable
  attr_reader :w
  def initialize(w); @w = w; end
  def <=>(o)
    @w == 2 ? (w.to_s + convert) && 0 : w - o.w
  end
  def convert
    "#{Printer.new}"
  end
  def hash; 1; end
  def eql?(o); self == o; end
end
class Printer
  def to_s
    h = Hash.new { |hash, key| hash[key] = compute(key) }
    h[:a]
  end
  def compute(key)
    [3, 1].sort_by { |x| [x].max_by { |y| Struct.new(:a).new(1).each { |z| [z].sort { |p, q| 0 }; trace } } }
  end
end
[Weight.new(1), Weight.new(2), Weight.new(2)].sort.max
