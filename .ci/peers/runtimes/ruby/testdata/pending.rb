# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class OddError < StandardError; end

def leave
  yield
ensure
  File.open(ENV.fetch("TRACE"), "a") { |f| f.puts("raised\t#{$!.class}\t#{$!.message}"); $!.backtrace_locations.each { |l| f.puts("at\t#{l.label}\t#{l.path}\t#{l.lineno}") } }
  trace
end

def raises
  raise OddError, "on its way"
end
leave { [1].each { raises } }
