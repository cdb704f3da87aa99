# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class Meta
  define_method(:defined) { |x| helper(x) }
  def helper(x); unknown_method(x); end
  def method_missing(name, *args)
    return super unless name == :unknown_method
    public_send(:sent, *args)
  end
  def respond_to_missing?(*)
    true
  end
  def sent(x)
    [x].each(&method(:through))
  end
  def through(x)
    p = proc { |y| y.instance_variable_get(:@z); %w[a].map(&:upcase); tracer.call }
    p.(x)
  end
  def tracer; lambda { trace }; end
end
Meta.new.method(:defined).unbind.bind(Meta.new).call(1)
