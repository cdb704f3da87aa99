// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/daemon"
	"github.com/unwindd/unwindd/.ci/peers/smalldisk"
)

// soakFolder is the variable by which this program is told that it is the soak, and where its
// material is.
const soakFolder = "SERVE_SOAK"

// soakApart executes this program again, as the soak, in a mount namespace of its own: the
// disk of its server is small, and full at times.
func soakApart(unwindd, dir string) error {
	if err := smalldisk.Apart(os.Args[1:], soakFolder+"="+dir, "SERVE_UNWINDD="+unwindd); err != nil {
		return fmt.Errorf("the soak: %w", err)
	}
	return nil
}

// diskSize is how many bytes the disk of the server has.
const diskSize = 256 << 20

// soakWorkers is how many requests the server works on at a time.
const soakWorkers = 4

// soakFlags are the limits of the server: a queue that is full at times, and callers that it
// does not wait for long.
var soakFlags = []string{"--workers", strconv.Itoa(soakWorkers), "--max-waiting", "24", "--max-idle", "4s", "--max-time", "30s", "--log-level", "debug"}

// soaking is one that is under way.
type soaking struct {
	*daemon.Server
	unwindd, dir string
	inputs       []*input
	kinds        []*kind
	harm         harm

	mu       sync.Mutex
	outcomes map[string]map[string]int // of kinds of requests
	failures []string
}

func runSoak(dir string) error {
	disk, remove, err := daemon.Folder()
	if err != nil {
		return err
	}
	defer remove()
	unmount, err := smalldisk.Mount(disk, diskSize)
	if err != nil {
		return err
	}
	defer unmount()
	s := &soaking{unwindd: os.Getenv("SERVE_UNWINDD"), dir: dir, outcomes: map[string]map[string]int{}}
	if err := s.prepare(); err != nil {
		return err
	}
	if s.Server, err = daemon.Start(s.unwindd, disk, soakFlags...); err != nil {
		return err
	}
	fmt.Printf("\nsoak of %v, %d callers, seed %d\n", *soak, *callers, *seed)
	err = s.run()
	ended := s.End()
	if log, e := os.ReadFile(disk + ".log"); e == nil {
		_ = os.WriteFile(filepath.Join(dir, "soak.log"), log, 0o600) // for who keeps the folder
	}
	return errors.Join(err, ended, s.print())
}

// run torments the server, and checks its remains.
func (s *soaking) run() error {
	if err := s.putAll(); err != nil {
		return err
	}
	if err := wake(s.Server, s.inputs, soakWorkers); err != nil {
		return err
	}
	before, err := s.Settled(nil)
	if err != nil {
		return err
	}
	fmt.Printf("at the start: %v\n", before)
	stop := make(chan struct{})
	var torments, asking sync.WaitGroup
	s.torment(&torments, stop)
	for i := range *callers {
		asking.Go(func() {
			c := newCaller(s, rand.New(rand.NewPCG(*seed, uint64(i)))) //nolint:gosec // no secret
			defer c.close()
			for {
				select {
				case <-stop:
					return
				default:
					c.turn()
				}
			}
		})
	}
	watched := s.Watch()
	time.Sleep(*soak)
	samples := watched()
	close(stop)
	torments.Wait()
	asking.Wait()
	if err := wake(s.Server, s.inputs, soakWorkers); err != nil {
		return err
	}
	after, err := s.Settled(before)
	if err != nil {
		return err
	}
	fmt.Printf("at the end:   %v\n", after)
	grows := daemon.JudgeMemory(samples)
	if *soak < longSoak {
		grows = nil // what workers know of code is found out for longer than a quarter of it
	}
	return errors.Join(grows, after.NotAbove(before), s.left())
}

// longSoak is how long a soak is whose memory is judged.
const longSoak = 5 * time.Minute

// spareSeconds is how long the files of requests may be kept for the next ones, of which each replaces
// the oldest: see engine/service/spares.go.
const spareSeconds = 5

// left returns the remains of requests when none is under way.
func (s *soaking) left() error {
	var errs []error
	for range spareSeconds {
		errs = nil
		for _, pid := range s.Processes() {
			for _, name := range daemon.Nameless(pid, s.Server.Dir) {
				errs = append(errs, fmt.Errorf("process %d has %s", pid, name))
			}
		}
		if errs == nil {
			break
		}
		time.Sleep(time.Second)
	}
	errs = append(errs, filepath.WalkDir(s.Server.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type() == fs.ModeSocket {
			return err
		}
		name, _ := filepath.Rel(s.Server.Dir, path)
		if !strings.HasPrefix(name, "state/unwindd/objects/") || strings.HasPrefix(d.Name(), "part-") {
			errs = append(errs, fmt.Errorf("file %s is left", name))
		}
		return nil
	}))
	workers, _ := s.Workers()
	folders, err := filepath.Glob(filepath.Join(s.Server.Dir, "unwindd", "s-*", "w", "*"))
	if err == nil && len(folders) > len(workers) {
		err = fmt.Errorf("%d folders of %d workers", len(folders), len(workers))
	}
	return errors.Join(append(errs, err)...)
}

// note notes how a request ended. One that ended as none may is a failure.
func (s *soaking) note(kind, outcome string, failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outcomes[kind] == nil {
		s.outcomes[kind] = map[string]int{}
	}
	s.outcomes[kind][outcome]++
	if failure != nil {
		s.failures = append(s.failures, fmt.Sprintf("%s %s: %v", time.Now().UTC().Format("15:04:05.000"), kind, failure))
	}
}

// shown is how many failures are printed.
const shown = 25

// print prints how requests ended, and the harm done to the server. The error means that
// some ended wrongly.
func (s *soaking) print() error {
	total := map[string]int{}
	for _, of := range s.outcomes {
		for name, n := range of {
			total[name] += n
		}
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range total {
			if !yield(name) {
				return
			}
		}
	})
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "requests\t%s\t\n", strings.Join(names, "\t"))
	row := func(kind string, counts map[string]int) {
		fmt.Fprintf(w, "%s\t", kind)
		for _, name := range names {
			fmt.Fprintf(w, "%d\t", counts[name])
		}
		fmt.Fprintln(w)
	}
	for _, k := range s.kinds {
		row(k.name, s.outcomes[k.name])
	}
	row("all", total)
	_ = w.Flush()
	fmt.Println(s.harm.String())
	if len(s.failures) == 0 {
		return nil
	}
	text := strings.Join(s.failures[:min(len(s.failures), shown)], "\n")
	_ = os.WriteFile(filepath.Join(s.dir, "failures"), []byte(strings.Join(s.failures, "\n")), 0o600) // likewise
	return fmt.Errorf("%d requests ended as none may:\n%s", len(s.failures), text)
}
