// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/smalldisk"
)

// harm records the harm done to the server, with times.
type harm struct {
	mu      sync.Mutex
	counts  map[string]int
	periods map[string][]period
}

// period is one in which the server was harmed in a way.
type period struct{ from, to time.Time }

// The ways.
const (
	killedWorker  = "workers killed"
	killedPlugin  = "plugins killed"
	stoppedWorker = "workers stopped"
	fullDisk      = "times the disk was full"
	hangUps       = "times settings were read again"
)

func (h *harm) add(how string, from time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		h.counts, h.periods = map[string]int{}, map[string][]period{}
	}
	h.counts[how]++
	h.periods[how] = append(h.periods[how], period{from, time.Now()})
}

// begin notes a period that lasts until end.
func (h *harm) begin(how string) (end func()) {
	h.add(how, time.Now())
	h.mu.Lock()
	defer h.mu.Unlock()
	at := len(h.periods[how]) - 1
	h.periods[how][at].to = time.Now().Add(time.Hour)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.periods[how][at].to = time.Now()
	}
}

// aftermath is how long after a harm it may be told of: a plugin that could not be started
// is started again a moment later.
const aftermath = 2 * time.Second

// concerns reports whether the server was harmed in one of some ways since a moment, or a little
// before.
func (h *harm) concerns(since time.Time, kinds ...string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, how := range kinds {
		for _, p := range h.periods[how] {
			if p.to.Add(aftermath).After(since) {
				return true
			}
		}
	}
	return false
}

func (h *harm) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("%d %s, %d %s, %d %s for 1 to 3 s, %d %s, %d %s", h.counts[killedWorker], killedWorker, h.counts[killedPlugin], killedPlugin,
		h.counts[stoppedWorker], stoppedWorker, h.counts[fullDisk], fullDisk, h.counts[hangUps], hangUps)
}

// torment harms the server in all ways, each again and again, until stop is closed.
func (s *soaking) torment(all *sync.WaitGroup, stop <-chan struct{}) {
	for i, one := range []struct {
		every time.Duration // on average
		do    func(*rand.Rand)
	}{
		{3 * time.Second, func(r *rand.Rand) { workers, _ := s.Workers(); s.kill(r, workers, killedWorker) }},
		{2 * time.Second, func(r *rand.Rand) { _, plugins := s.Workers(); s.kill(r, plugins, killedPlugin) }},
		{8 * time.Second, s.stopWorker},
		{5 * time.Second, func(*rand.Rand) {
			_ = s.Command.Process.Signal(syscall.SIGHUP) // it may have died: that is noticed
			s.harm.add(hangUps, time.Now())
		}},
		{12 * time.Second, s.fillDisk},
	} {
		r := rand.New(rand.NewPCG(*seed, uint64(1000+i))) //nolint:gosec // no secret
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(one.every/2 + time.Duration(r.Int64N(int64(one.every)))):
					one.do(r)
				}
			}
		})
	}
}

// kill kills one of some processes.
func (s *soaking) kill(r *rand.Rand, list []int, how string) {
	if len(list) == 0 {
		return
	}
	from := time.Now()
	if syscall.Kill(list[r.IntN(len(list))], syscall.SIGKILL) == nil {
		s.harm.add(how, from)
	}
}

// stopWorker stops a worker for some seconds.
func (s *soaking) stopWorker(r *rand.Rand) {
	workers, _ := s.Workers()
	if len(workers) == 0 {
		return
	}
	pid := workers[r.IntN(len(workers))]
	end := s.harm.begin(stoppedWorker)
	defer end()
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return // it is gone
	}
	time.Sleep(time.Second + time.Duration(r.Int64N(int64(2*time.Second))))
	_ = syscall.Kill(pid, syscall.SIGCONT) // likewise
}

// fillDisk takes all room of the server's disk for a while.
func (s *soaking) fillDisk(r *rand.Rand) {
	end := s.harm.begin(fullDisk)
	defer end()
	smalldisk.Fill(s.Server.Dir, 500*time.Millisecond+time.Duration(r.Int64N(int64(1500*time.Millisecond))))
}
