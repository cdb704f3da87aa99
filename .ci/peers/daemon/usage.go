// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/processes"
)

// Processes are the server and its descendants, the server first.
func (s *Server) Processes() []int { return processes.Of(s.Command.Process.Pid) }

// Workers are the children of the server, and plugins their children.
func (s *Server) Workers() (workers, plugins []int) {
	for _, pid := range s.Processes()[1:] {
		if p, err := processes.StatOf(pid); err == nil && p.Parent == s.Command.Process.Pid {
			workers = append(workers, pid)
		} else if err == nil {
			plugins = append(plugins, pid)
		}
	}
	return workers, plugins
}

// Usage is the memory, descriptors and goroutines of a server and its descendants at a moment.
type Usage struct {
	Goroutines          int // of the server
	Descriptors         int // likewise
	Processes           int
	ServerPSS, OtherPSS int64 // KiB, without pages of files; OtherPSS is of workers and plugins
	RSS                 int64 // KiB of all, without pages of files
	CPU                 time.Duration
	Spool, Queue        float64
}

func (u *Usage) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d processes, PSS %.1f MiB and %.1f MiB of workers and plugins, RSS %.1f MiB (without pages of files)",
		u.Goroutines, u.Descriptors, u.Processes, MiB(u.ServerPSS), MiB(u.OtherPSS), MiB(u.RSS))
}

// MiB converts a number of KiB.
func MiB(kib int64) float64 { return float64(kib) / 1024 }

// Usage asks the server and /proc.
func (s *Server) Usage() (*Usage, error) {
	figures, err := s.Metrics()
	if err != nil {
		return nil, err
	}
	u, err := s.Used()
	if err == nil {
		u.Goroutines, u.Spool, u.Queue = int(figures["go_goroutines"]), figures["unwindd_spool_bytes"], figures["unwindd_queue_length"]
	}
	return u, err
}

// Used asks /proc alone: a server that is attacked may have no time.
func (s *Server) Used() (*Usage, error) {
	u := &Usage{}
	own := s.Command.Process.Pid
	u.Descriptors = len(Descriptors(own))
	for _, pid := range s.Processes() {
		// A process may end meanwhile.
		p, err := processes.StatOf(pid)
		if err != nil {
			continue
		}
		u.Processes++
		u.CPU += p.CPU
		pss, rss := anonymous(pid)
		u.RSS += rss
		if pid == own {
			u.ServerPSS = pss
		} else {
			u.OtherPSS += pss
		}
	}
	return u, nil
}

// anonymous is the memory of a process that is of no file, in KiB: its share, and all of it.
func anonymous(pid int) (pss, rss int64) {
	rollup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return field(rollup, "\nPss_Anon:"), field(status, "\nRssAnon:")
}

// field is a number of a text of /proc; 0 where it has none.
func field(text []byte, name string) (n int64) {
	if _, rest, ok := strings.Cut(string(text), name); ok {
		_, _ = fmt.Sscan(rest, &n) // text that is not a number is 0
	}
	return n
}

// Descriptors lists the files that a process has open.
func Descriptors(pid int) (list []string) {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil {
			list = append(list, to)
		}
	}
	slices.Sort(list)
	return list
}

// Nameless returns the files without a name that a process has open or mapped beneath a
// folder: uploads and unpacked files.
func Nameless(pid int, folder string) (list []string) {
	for _, name := range Descriptors(pid) {
		if strings.HasPrefix(name, folder) && strings.HasSuffix(name, "(deleted)") {
			list = append(list, name)
		}
	}
	maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	for line := range strings.Lines(string(maps)) {
		if _, path, ok := strings.Cut(line, folder); ok && strings.Contains(path, "(deleted)") {
			list = append(list, "mapped "+folder+strings.TrimSpace(path))
		}
	}
	return list
}
