# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
if defined?(Ractor)
  $VERBOSE = nil
  Warning[:experimental] = false
  r = Ractor.new(ENV.fetch("TRACE")) do |file|
    def trace_ractor(file)
      File.open(file, "a") { |f| t = Thread.current; f.puts("thread\t#{t.respond_to?(:native_thread_id) ? t.native_thread_id.inspect : "nil"}\t#{t.name}\trun"); t.backtrace_locations.each { |l| f.puts([l.label, l.path, l.lineno].join("\t")) } }; Ractor.receive
    end

    def deep(n, file)
      n == 0 ? [1].each { trace_ractor(file) } : deep(n - 1, file)
    end
    deep(3, file)
  end
end
sleep 0.5
[1].each { trace }
