# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class Größe
  def länge; [1].each { |ß| 測定 }; end
  def 測定; Class.new { def anonymous; Module.new { def self.in_module; trace; end }.in_module; end }.new.anonymous; end
end
Größe.new.länge
