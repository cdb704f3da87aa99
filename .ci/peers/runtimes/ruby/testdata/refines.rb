# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
module Loud
  refine String do
    def shout; upcase.tap { |x| trace }; end
  end
end
module Log
  def run(*a); super; end
end
class Base
  def run(x = 1, *rest, k: 2, **o, &b); b ? b.call : work; end
  alias walk run
  alias_method :go, :walk
end
class Derived < Base
  prepend Log
  using Loud
  def run(*a); super { "x".shout }; end
end
Derived.new.run
