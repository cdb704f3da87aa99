// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/daemon"
)

const (
	benchCallers = 8
	benchTurns   = 3
)

// measure has 8 callers send small cores to servers of executables, in turns, and prints the
// best turn of each: others' work on the machine makes a turn slower, and none quicker.
func measure(dir string, executables []string) error {
	if len(executables) == 0 {
		built, err := cost.Unwindd("ATTACKS_UNWINDD", dir)
		if err != nil {
			return err
		}
		executables = []string{built}
	}
	best := make([]turn, len(executables))
	for range benchTurns {
		for i, path := range executables {
			t, err := one(path)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %v\n", path, &t)
			if best[i].each == 0 || t.each > best[i].each {
				best[i] = t
			}
		}
	}
	for i, path := range executables {
		fmt.Printf("best of %d turns of %s: %v\n", benchTurns, path, &best[i])
	}
	return nil
}

// turn is how quick a server was.
type turn struct {
	each     float64 // stacks a second
	p50, p99 time.Duration
	alone    time.Duration // p50 of one caller
}

func (t *turn) String() string {
	return fmt.Sprintf("%.0f stacks a second, p50 %s, p99 %s; one caller p50 %s", t.each, ms(t.p50), ms(t.p99), ms(t.alone))
}

func one(unwindd string) (t turn, err error) {
	dir, remove, err := daemon.Folder()
	if err != nil {
		return t, err
	}
	defer remove()
	s, err := daemon.Start(unwindd, dir, "--workers", "2")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.End()) }()
	c := s.Client("tcp")
	defer c.CloseIdleConnections()
	if err := s.Put(c, exampleID, example("crash", "server")); err != nil {
		return t, err
	}
	if _, err := send(s, benchCallers, *count/4); err != nil { // until all is warm
		return t, err
	}
	began := time.Now()
	list, err := send(s, benchCallers, *count)
	t = turn{each: float64(len(list)) / time.Since(began).Seconds(), p50: percentile(list, 50), p99: percentile(list, 99)}
	if err != nil {
		return t, err
	}
	list, err = send(s, 1, *count/4)
	t.alone = percentile(list, 50)
	return t, err
}

// send has callers send so many cores together.
func send(s *daemon.Server, callers, n int) ([]sample, error) {
	core := example("crash", "server.core")
	var next atomic.Int64
	lists, errs := make([][]sample, callers), make([]error, callers)
	var all sync.WaitGroup
	for i := range lists {
		all.Go(func() {
			c := s.Client("tcp")
			defer c.CloseIdleConnections()
			for errs[i] == nil && next.Add(1) <= int64(n) {
				began := time.Now()
				status, text, err := daemon.Send(context.Background(), c, http.MethodPost, s.Origin()+"/v1/stack", core)
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("status %d: %s", status, text)
				}
				errs[i] = err
				lists[i] = append(lists[i], sample{took: time.Since(began)})
			}
		})
	}
	all.Wait()
	return slices.Concat(lists...), errors.Join(errs...)
}
