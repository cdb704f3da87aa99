# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class Box
  def initialize; @v = 1; end
  def get_binding; binding; end
end
Box.class_eval <<-R, "box_eval.rb", 100
  def evaluated(x)
    instance_eval { x.call }
  end
R
b = Box.new
eval("[1].each { |x|\n b.evaluated(-> {\n  b.instance_exec(2) { |y| eval('trace') } }) }", binding, "other.rb", 7)
