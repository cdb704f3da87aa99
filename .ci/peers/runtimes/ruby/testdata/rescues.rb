# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
def raises
  raise ArgumentError, "first"
rescue ArgumentError => e
  begin
    raise "second"
  rescue
    handle(e)
  end
end

def handle(e)
  yield if block_given?
ensure
  begin
    Integer("x")
  rescue TypeError, ArgumentError => f
    [f].each { |x| cleanup { trace } }
  end
end

def cleanup
  yield
ensure
  1
end
tries = 0
begin
  tries += 1
  raise "again" if tries < 3
  raises
rescue RuntimeError
  retry
end
