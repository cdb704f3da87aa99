// SPDX-License-Identifier: Apache-2.0

package service

// spareWorkers is the number of workers, besides Workers, that are for callers of whom no
// request runs. The last one is for an address of which none runs.
const spareWorkers = 2

// maxConnections bounds the connections of a server without a setting.
const maxConnections = 4096

// messageMemory is the memory for messages of all calls, and for batches of addresses, as large
// as they may become.
const messageMemory = 512 << 20

// leastDescriptors is how many descriptors every process may have.
const leastDescriptors = 256

// connections returns how many connections may be open. A quarter of all descriptors is for
// them, a half for files of requests, and the rest for workers and stored files.
func (l *Limits) connections() int {
	if l.Connections > 0 {
		return l.Connections
	}
	return max(min(maxConnections, descriptors()/4), 1)
}

// setBudgets makes what callers share.
func (s *Server) setBudgets() {
	denied := func(things string) { s.metrics.denials.WithLabelValues(things).Inc() }
	s.budget = newBudgetOf("bytes on disk", s.Spool, denied)
	s.budget.files = newBudgetOf("files", int64(descriptors()/2), denied)
	s.memory = newBudgetOf("bytes of memory", messageMemory, denied)
	s.requests = newBudgetOf("requests", int64(s.Limits.connections()), denied)
	s.connections = newConnections(s.Limits.connections(), func(event string) { s.metrics.connections.WithLabelValues(event).Inc() })
}
