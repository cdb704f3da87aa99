// SPDX-License-Identifier: Apache-2.0

// Package plugin finds, starts, watches and restarts architecture plugins, and
// checks all they say.
//
// A plugin is not trusted. It is a process of its own, from which is taken what
// an architecture does not need: the user's files, the network, other processes,
// the sockets of the desktop and of daemons, children of its own. A vendor's
// plugin is started through `unwindd plugin exec` (ExecMain), so that all of it is
// gone before the plugin's first instruction runs. A bundled one is this project's
// own code and needs no second start. What a process cannot take from all of its
// threads (Landlock, capabilities) the thread that forks it gives up before; the
// process takes the rest (rlimits, system calls) from itself, before it reads what
// somebody else has made.
//
// It is spoken to over one Unix socket in a private directory, on a connection
// whose peer is the process that was started, with TLS on top for vendors'. Each
// call has a deadline. An answer is validated before anyone sees it. A plugin
// that dies or hangs is restarted, later each time, and given up when that does
// not help; what needed it ends with a *Failure that says why, and everything
// else goes on.
//
// An Arch is one architecture, wherever it runs: bundled (this executable,
// started again), a vendor's executable, or in this process.
//
// The package is large because confining a process (Landlock, system calls, limits) is
// in it, which alternates with starting it, step by step.
package plugin
