# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class Num
  def +(o); self - o; end
  def -(o); self[o]; end
  def [](i); self.value = i; end
  def value=(x); !self; end
  def !; ~self; end
  def ~; -self; end
  def -@; self == 1; end
  def ==(o); self =~ o; end
  def =~(o); ok? ; end
  def ok?; bang!; end
  def bang!; self << 1; end
  def <<(o); coerce(1); end
  def coerce(o); [1, 2].each_slice(2) { |a, b| `true`; "x" % []; trace }; end
end
Num.new + 1
