# SPDX-License-Identifier: Apache-2.0
require_relative "trace"
BEGIN { $x = 1 }
END { raised; [1].each { trace } }
at_exit { raise "in at_exit" rescue $x }
def quit; exit(3); ensure $y = 2; end
quit
