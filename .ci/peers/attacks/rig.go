// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/daemon"
	"github.com/unwindd/unwindd/.ci/peers/processes"
)

// rig is a run of attacks.
type rig struct {
	unwindd, dir string
}

const (
	maxIdle    = 3 * time.Second
	maxSpool   = 64 * mib
	maxObjects = 64 * mib
	maxReports = 32 * mib
	maxMemory  = 1024 * mib
	workers    = 2
	// descriptors is how many files the server may have open.
	descriptors = 1024
)

// limits are the limits of the server.
var limits = []string{
	"--workers", fmt.Sprint(workers), "--max-idle", maxIdle.String(), "--max-body", "16M", "--max-spool", fmt.Sprint(maxSpool), "--max-time", "6s", "--max-memory", fmt.Sprint(maxMemory),
	"--max-waiting", "64", "--max-waiting-each", "8", "--max-objects", fmt.Sprint(maxObjects), "--max-reports", fmt.Sprint(maxReports), "--log-level", "debug",
}

const honestToken = "honest-honest-honest-honest"

// attackersTokens let the attacker in, each by a name of its own.
var attackersTokens = func() (list []string) {
	for i := range 16 {
		list = append(list, fmt.Sprintf("attacker-%02d-attacker-attacker", i))
	}
	return list
}()

// serve starts a server, and makes its honest caller.
func (r *rig) serve() (h *honest, end func() error, err error) {
	dir, remove, err := daemon.Folder()
	if err != nil {
		return nil, nil, err
	}
	tokens := "honest " + honestToken + "\n"
	for i, t := range attackersTokens {
		tokens += fmt.Sprintf("attacker-%d %s\n", i, t)
	}
	file := filepath.Join(r.dir, "tokens")
	if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
		remove()
		return nil, nil, err
	}
	command := []string{"prlimit", fmt.Sprintf("--nofile=%d", descriptors), "--core=0", r.unwindd}
	s, err := daemon.StartBy(command, dir, append([]string{"--tokens", file}, limits...)...)
	if err != nil {
		remove()
		return nil, nil, err
	}
	s.Token = honestToken
	end = func() error {
		defer remove()
		err := s.End()
		if log, e := os.ReadFile(dir + ".log"); e == nil {
			_ = os.WriteFile(filepath.Join(r.dir, "server.log"), log, 0o600) // for who keeps the folder
		}
		return err
	}
	if h, err = newHonest(s); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return h, end, nil
}

// quiet is how long the honest caller is alone before an attack.
func quiet(d time.Duration) time.Duration {
	if *quick {
		return time.Second
	}
	return min(max(d/3, 2*time.Second), 30*time.Second)
}

// groups runs the attacks of each group at once.
func (r *rig) groups(chosen []*kind, d time.Duration) (failed error) {
	var names []string
	of := map[string][]*kind{}
	for _, a := range chosen {
		if of[a.group] == nil {
			names = append(names, a.group)
		}
		of[a.group] = append(of[a.group], a)
	}
	for _, name := range names {
		failed = errors.Join(failed, r.together(name, of[name], d))
	}
	return failed
}

// together runs attacks at once, against a server of their own.
func (r *rig) together(name string, chosen []*kind, d time.Duration) error {
	if len(chosen) == 0 {
		return nil
	}
	h, end, err := r.serve()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	o, err := r.observe(h, chosen, d)
	h.close()
	err = errors.Join(err, end())
	if o != nil {
		err = errors.Join(o.judge(), err)
		o.print(name, err)
	}
	switch {
	case err == nil:
		return nil
	case o == nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s succeeds", name)
}

// outcome has the observations of the server and its honest caller.
type outcome struct {
	quiet, attacked []sample
	before, after   *daemon.Usage
	most            daemon.Usage
	disk            [3]disk // before, at most, after
	ended           string  // why the rig ended the server
	said            error   // by the attacks
	samples         []*daemon.Usage
}

// observe runs attacks, and looks.
func (r *rig) observe(h *honest, chosen []*kind, d time.Duration) (*outcome, error) {
	o := &outcome{}
	if err := h.wake(); err != nil {
		return nil, err
	}
	alone, cancel := context.WithTimeout(context.Background(), quiet(d))
	defer cancel()
	o.quiet = h.goOn(alone)
	var err error
	if o.before, err = h.Settled(nil); err != nil {
		return nil, err
	}
	o.disk[0] = diskOf(h.Server)
	hard, end := context.WithCancel(context.Background())
	defer end()
	cmd, said, err := r.start(hard, chosen, h.TCP, d)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	stop := o.watch(h.Server)
	o.attacked = h.goOn(ctx)
	// One that gives way on a busy machine may not see in time that it is over.
	time.AfterFunc(5*time.Second, end)
	if err := cmd.Wait(); err != nil && hard.Err() == nil {
		o.said = fmt.Errorf("%s (%w)", strings.TrimSpace(said.String()), err)
	}
	stop()
	if o.after, err = o.settled(h.Server); err != nil {
		return o, fmt.Errorf("the server after the attack: %w", err)
	}
	o.disk[2] = diskOf(h.Server)
	// A machine that others use is as quick before as after, more or less.
	later, cancel := context.WithTimeout(context.Background(), quiet(d))
	defer cancel()
	list := h.goOn(later)
	if errs, n := lost(list); n > 0 {
		err = fmt.Errorf("after the attack %d answers are missing: %s", n, strings.Join(errs, "; "))
	}
	o.quiet = append(o.quiet, list...)
	return o, err
}

// settled measures the server when all requests have ended, or have had their time.
func (o *outcome) settled(s *daemon.Server) (u *daemon.Usage, err error) {
	for end := time.Now().Add(afterwards); ; time.Sleep(250 * time.Millisecond) {
		u, err = s.Usage()
		if err != nil || time.Now().After(end) {
			return u, err
		}
		if o.after = u; o.judgeAfter() == nil {
			return u, nil
		}
	}
}

// afterwards bounds the time in which the remains of an attack go: a request that has begun has
// its time.
const afterwards = 15 * time.Second

// The machine of the test is not to be harmed: the rig ends a server that has more than this.
const (
	mostRSS  = 5 << 20 // KiB
	mostDisk = 4 << 30
)

// watch looks at the server until stop.
func (o *outcome) watch(s *daemon.Server) (stop func()) {
	ended := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			if u, err := s.Used(); err == nil {
				m := &o.most
				m.Descriptors, m.Processes = max(m.Descriptors, u.Descriptors), max(m.Processes, u.Processes)
				m.ServerPSS, m.OtherPSS, m.RSS = max(m.ServerPSS, u.ServerPSS), max(m.OtherPSS, u.OtherPSS), max(m.RSS, u.RSS)
				o.samples = append(o.samples, u)
			}
			d := diskOf(s)
			o.disk[1] = o.disk[1].most(d)
			if o.most.RSS > mostRSS || d.sum() > mostDisk {
				o.ended = fmt.Sprintf("it had %.0f MiB of memory and %.0f MiB on disk", daemon.MiB(o.most.RSS), float64(d.sum())/mib)
				_ = s.Command.Process.Signal(syscall.SIGKILL)
				return
			}
			select {
			case <-ended:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() {
		close(ended)
		all.Wait()
	}
}

// disk has the bytes of files beneath folders of the server, those without a name too.
type disk struct{ state, run, tmp int64 }

func (d disk) sum() int64 { return d.state + d.run + d.tmp }

func (d disk) most(e disk) disk {
	return disk{max(d.state, e.state), max(d.run, e.run), max(d.tmp, e.tmp)}
}

func (d disk) String() string {
	return fmt.Sprintf("%.1f/%.1f/%.1f", float64(d.state)/mib, float64(d.run)/mib, float64(d.tmp)/mib)
}

// diskOf looks at the folders, and at descriptors of the server and its descendants.
func diskOf(s *daemon.Server) (d disk) {
	add := func(path string, n int64) {
		switch name, _ := filepath.Rel(s.Dir, path); {
		case strings.HasPrefix(name, "state"):
			d.state += n
		case strings.HasPrefix(name, "tmp"):
			d.tmp += n
		default:
			d.run += n
		}
	}
	seen := map[[2]uint64]bool{} // a file may have two names
	blocks := func(i fs.FileInfo) int64 {
		st, ok := i.Sys().(*syscall.Stat_t)
		if !ok || !i.Mode().IsRegular() || seen[[2]uint64{st.Dev, st.Ino}] {
			return 0
		}
		seen[[2]uint64{st.Dev, st.Ino}] = true
		return st.Blocks * 512
	}
	_ = filepath.WalkDir(s.Dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			if i, err := e.Info(); err == nil {
				add(path, blocks(i))
			}
		}
		return nil // what goes meanwhile is gone
	})
	for _, pid := range processes.Of(s.Command.Process.Pid) {
		entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		for _, e := range entries {
			path := fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name())
			to, err := os.Readlink(path)
			if err != nil || !strings.HasPrefix(to, s.Dir) || !strings.HasSuffix(to, "(deleted)") {
				continue
			}
			if i, err := os.Stat(path); err == nil {
				add(to, blocks(i))
			}
		}
	}
	return d
}
