// SPDX-License-Identifier: Apache-2.0

package service

// now returns the limits in force.
func (s *Server) now() *Limits { return s.limits.Load() }

// SetLimits replaces limits while the server serves. Handed stays as it was, and so do the
// limits that workers were started with: Workers, Memory and Unpack.
func (s *Server) SetLimits(l Limits) {
	old := s.now()
	l.Workers, l.Memory, l.Unpack, l.Handed = old.Workers, old.Memory, old.Unpack, old.Handed
	s.limits.Store(&l)
	s.queue.resize(l.Waiting, l.PerUser)
	s.downloads.resize(l.Waiting, l.PerUser)
	if s.offload != nil {
		s.offload.places.resize(l.Waiting, l.PerUser)
	}
	s.budget.resize(l.Spool)
	s.requests.resize(int64(l.connections()))
	s.connections.budget.resize(int64(l.connections()))
	s.store.Resize(l.Objects)
	s.pool.SetBounds(l.Time, l.Answer)
}

// resize changes how many requests may wait. Requests that wait already stay.
func (q *queue) resize(maxWaiting, maxPerCaller int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.maxWaiting, q.maxPerCall = maxWaiting, maxPerCaller
}
