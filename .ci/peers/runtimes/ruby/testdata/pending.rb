# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class OddError < StandardError; end

def leave
  yield
ensure
  raised
  trace
end

def raises
  raise OddError, "on its way"
end
leave { [1].each { raises } }
