# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
module Outer
  module Inner
    class Thing
      class << self
        def build(*args)
          new(*args)
        end

        define_method(:other) { build(2) }
      end

      def initialize(x)
        @x = x
        singleton = Class.new do
          def run; yield; end
        end
        o = Object.new
        def o.special(k); k.run { Kernel.send(:binding); [1].sum { |z| trace } }; end
        o.special(singleton.new)
      end

      other
    end
  end
end
