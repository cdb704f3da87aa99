# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class Base
  def self.inherited(c); c.const_get(:Missing); super; end
  def self.const_missing(n); tp = TracePoint.new(:call) { |t| tp.disable; trace }; tp.enable { hook }; end
  def self.hook; 1; end
end
class Derived < Base; end
