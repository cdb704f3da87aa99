# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
class Handler
  def call(sig)
    [sig].each { |s| trace }
  end
end
trap(:USR1, &Handler.new.method(:call))
def busy
  Process.kill(:USR1, Process.pid)
  100.times { sleep 0.1 }
end
busy
