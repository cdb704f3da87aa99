# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
require "tmpdir"
Dir.mktmpdir do |d|
  File.write(File.join(d, "second.rb"), "module Second\n  def self.go\n    trace\n  end\nend\n")
  File.write(File.join(d, "first.rb"), "\nautoload :Second, #{File.join(d, "second.rb").inspect}\nload #{File.join(d, "third.rb").inspect}\n")
  File.write(File.join(d, "third.rb"), "Second.go\n")
  $LOAD_PATH.unshift(d)
  require "first"
end
