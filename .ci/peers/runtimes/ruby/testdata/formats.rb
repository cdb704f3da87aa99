# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class Shown
  def inspect; "%s" % self; end
  def to_s; format("%d", self).to_s; end
  def to_int; Array(self).size; end
  def to_a; [1].pack("C").each_byte.lazy.map { |x| ObjectSpace.each_object(Class).first(1).each { trace } }.first(1); end
end
p Shown.new
