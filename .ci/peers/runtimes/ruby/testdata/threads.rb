# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
q = Queue.new
m = Mutex.new
cv = ConditionVariable.new
m2 = Mutex.new
m2.lock
class Pool
  def pop(q)
    q.pop
  end
end
r, _w = IO.pipe
Thread.new { Thread.current.name = "queue"; Pool.new.pop(q) }
Thread.new { Thread.current.name = "sleep"; loop { sleep } }
Thread.new { m.synchronize { cv.wait(m) } }
Thread.new { m2.synchronize { 1 } }
Thread.new { r.read(1) }
Thread.new { IO.select([r]) }
t = Thread.new { [1].each { |x| sleep 1000 } }
Thread.new { t.join }
Thread.new { t.value }
Thread.new { Process.wait(spawn("sleep 3")) }
settle(11)
trace
