# SPDX-License-Identifier: Apache-2.0
require_relative "trace"

# What unwindd writes of a value: as inspect does where that is no code of the program.
def shown(x)
  case x
  when Integer, Float, Symbol, String, nil, true, false then x.inspect
  when Array then "#{x.size} elements"
  when Hash then "#{x.size} pairs"
  when Module then x.name
  else "#<#{x.class}>"
  end
end

class Held
  def initialize; @a = 1; end
end

def holder(first, second = 2.5, *rest, key: :word, **others, &block)
  small = -5
  long = 2**80
  negative = -(3**60)
  text = "a text with \"quotes\""
  longer = "x" * 100
  empty = ""
  ünicode = "größe"
  list = [1, [2, 3], "four", nil]
  great = (1..60).to_a
  table = { a: 1, "b" => [2] }
  wide = (1..20).map { |i| [i, i] }.to_h
  nothing = nil
  yes = true
  no = false
  tiny = 1.0e-300
  zero = 0.0
  huge = 1.0e20
  half = -0.5
  dynamic = "made #{small}".to_sym
  object = Held.new
  struct = Struct.new(:a).new(1)
  set = :symbol
  klass = Held
  range = 1..2
  regexp = /x/
  File.open(ENV.fetch("TRACE"), "a") { |f| f.puts("locals\tholder"); binding.local_variables.each { |n| f.puts("local\t#{n}\t#{shown(binding.local_variable_get(n))}") unless n == :f || n == :unset } }
  trace
  unset = 1
end
holder(1, 3.25, :rest, more: 1) { 1 }
