# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
require "timeout"
require "monitor"
require "set"
require "stringio"
m = Monitor.new
m.synchronize do
  Timeout.timeout(60) do
    settle(2) if Thread.list.size > 1
    Set[1].each { |x| StringIO.new("a\nb").each_line { |l| l.scan(/a/) { "b".gsub(/b/) { trace } } } }
  end
end
