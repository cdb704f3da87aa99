// SPDX-License-Identifier: Apache-2.0

// Command goroutines is a service of many goroutines, a few of which wait elsewhere:
// goroutines FOLDER GOROUTINES STUCK.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type service struct {
	folder   string
	requests chan int
	ledger   sync.Mutex
	arrived  atomic.Int64
	all      sync.WaitGroup
}

//go:noinline
func (s *service) waitForRequest() {
	s.arrived.Add(1)
	<-s.requests
}

//go:noinline
func (s *service) writeLedger() {
	s.arrived.Add(1)
	s.ledger.Lock()
	defer s.ledger.Unlock()
	s.arrived.Add(-1)
}

//go:noinline
func (s *service) session(isStuck bool) {
	defer s.all.Done()
	if isStuck {
		s.writeLedger()
		return
	}
	s.waitForRequest()
}

func (s *service) write(name string) {
	path := filepath.Join(s.folder, name+".0")
	if os.WriteFile(path+".new", []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600) != nil || os.Rename(path+".new", path) != nil {
		os.Exit(3)
	}
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "goroutines FOLDER GOROUTINES STUCK")
		os.Exit(2)
	}
	s := &service{folder: os.Args[1], requests: make(chan int)}
	count, _ := strconv.Atoi(os.Args[2])
	stuck, _ := strconv.Atoi(os.Args[3])
	s.ledger.Lock()
	for i := range count {
		s.all.Add(1)
		go s.session(i < stuck)
	}
	for s.arrived.Load() < int64(count) {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	s.write("ready")
	for {
		if _, err := os.Stat(filepath.Join(s.folder, "go")); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.ledger.Unlock()
	close(s.requests)
	s.all.Wait()
	s.write("done")
}
