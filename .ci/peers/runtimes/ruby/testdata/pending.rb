# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class OddError < StandardError; end
def leave
  yield
ensure
  trace
end
leave { raise OddError, "on its way" }
