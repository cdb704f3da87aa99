# SPDX-License-Identifier: Apache-2.0

# Calls without end: what may call what is in samples.go.
def spin(n)
  i = 0
  x = 1.5
  while i < n
    i += 1
    x = x * 1.0000001 + i
    x = 1.5 if x > 1e9
    a = [i, x]
    a[0] += 1
  end
  x
end

def deeper(n)
  n == 0 ? spin(20) : deeper(n - 1)
end

def each_of(list)
  list.each { |k| deeper(k) }
end

def top
  while true
    spin(200)
    each_of([1, 5, 30])
    "x y z".gsub(/[xyz]/) { |m| m.upcase }
  end
end
top
