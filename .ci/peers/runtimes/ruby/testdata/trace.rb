# SPDX-License-Identifier: Apache-2.0

# Writes the traces of all threads as Ruby says them, and ends the process at the same line. A thread that is not
# stopped yet has no trace to compare with.
def trace
  File.open(ENV.fetch("TRACE"), "a") { |f| Thread.list.each { |t| f.puts("thread\t#{t.respond_to?(:native_thread_id) ? t.native_thread_id.inspect : "nil"}\t#{t.name}\t#{t == Thread.current ? "run" : t.status}"); (t.backtrace_locations || []).each { |l| f.puts([l.label, l.path, l.lineno].join("\t")) } } }; Process.kill(:ABRT, Process.pid) while true
end

# Waits until all other threads sleep.
def settle(count)
  sleep 0.01 until Thread.list.size >= count && Thread.list.all? { |t| t == Thread.current || t.stop? }
  sleep 0.05
end

# Writes the exception that is on its way.
def raised
  File.open(ENV.fetch("TRACE"), "a") { |f| f.puts("raised\t#{$!.class}\t#{$!.message}"); $!.backtrace_locations.each { |l| f.puts("at\t#{l.label}\t#{l.path}\t#{l.lineno}") } }
end
