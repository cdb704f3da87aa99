// SPDX-License-Identifier: Apache-2.0

// Package plugin finds, starts, watches and restarts architecture plugins, and checks
// their answers.
//
// A plugin is not trusted. It is a process of its own, without access to what an
// architecture does not need: the user's files, the network, other processes, the sockets
// of the desktop and of daemons, children of its own. A vendor's plugin is started
// through `unwindd plugin exec` (ExecMain), so that all of it is gone before the plugin's
// first instruction runs. A bundled one is this project's own code and needs no second
// start. Landlock and capabilities cannot be applied to all threads of a process: the
// thread that forks it drops them before. The process applies the rest (rlimits, system
// calls) to itself, before it reads anything that somebody else has made.
//
// The engine talks to it over one Unix socket in a private directory, on a connection
// whose peer is the process that was started, with TLS on top for vendors'. Each call has
// a deadline. An answer is validated before it is used. A plugin that dies or hangs is
// restarted, after longer waits each time, and disabled when that does not help; calls
// that needed it end with a *Failure that has the reason, and everything else goes on.
//
// An Arch is one architecture, wherever it runs: bundled (this executable,
// started again), a vendor's executable, or in this process.
//
// The package is large because starting a process and confining it (Landlock, system
// calls, limits) alternate, step by step.
package plugin
