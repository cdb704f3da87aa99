// Package plugin finds, starts, watches and restarts architecture plugins, and
// checks all they say.
//
// A plugin is not trusted. It is a process of its own, started through
// `unwindd plugin exec` (ExecMain), which takes from it what an architecture
// does not need before its first instruction runs: the user's files, the
// network, other processes, the sockets of the desktop and of daemons, children
// of its own. It is spoken to over one Unix socket in a private directory, on a
// connection whose peer is the process that was started, with TLS on top. Each
// call has a deadline. An answer is validated before anyone sees it. A plugin
// that dies or hangs is restarted, later each time, and given up when that does
// not help; what needed it ends with a *Failure that says why, and everything
// else goes on.
//
// An Arch is one architecture, wherever it runs: bundled (this executable,
// started again), a vendor's executable, or in this process.
package plugin
