// SPDX-License-Identifier: Apache-2.0

package label

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Traced are labels that another file than its target has of a process: a trace of PyTorch's profiler.
type Traced struct {
	Path   string            `json:"path"` // of that file
	Host   string            `json:"host,omitempty"`
	PID    int64             `json:"pid"`
	Labels map[string]string `json:"labels"`
}

// Encode returns them as JSON, for DecodeTraced. Equal ones give equal bytes.
func (g *Traced) Encode() []byte {
	b, err := json.Marshal(g)
	if err != nil {
		panic(err) // it has no types that JSON lacks
	}
	return b
}

// DecodeTraced reads the result of Encode.
func DecodeTraced(data []byte) (*Traced, error) {
	g := &Traced{}
	if err := json.Unmarshal(data, g); err != nil {
		return nil, fmt.Errorf("labels of a process: %w", err)
	}
	return g, nil
}

// Process is a process to which labels are applied.
type Process struct {
	Host   string // "" where it is not known
	PID    int64  // 0: it is not known
	Labels map[string]string
}

// Apply adds labels to processes by their IDs, and their hosts where these are known. A process keeps the labels that it
// has. Labels of one process that contradict each other, and labels that may be of processes of several hosts, are not
// used. Each problem is a sentence. The result does not depend on the order of list.
func Apply(list []*Traced, processes []*Process) (problems []string) {
	byPID := map[int64][]*Traced{}
	for _, g := range slices.SortedFunc(slices.Values(list), func(a, b *Traced) int { return strings.Compare(string(a.Encode()), string(b.Encode())) }) {
		if g.PID > 0 {
			byPID[g.PID] = append(byPID[g.PID], g)
		}
	}
	hosts := map[int64]map[string]bool{} // of the processes of an ID
	for _, p := range processes {
		if hosts[p.PID] == nil {
			hosts[p.PID] = map[string]bool{}
		}
		hosts[p.PID][p.Host] = true
	}
	said := map[string]bool{}
	say := func(format string, args ...any) { said[fmt.Sprintf(format, args...)] = true }
	for _, p := range processes {
		var fits []*Traced
		for _, g := range byPID[p.PID] {
			switch {
			case !isSameHost(p.Host, g.Host):
			case g.Host == "" && len(hosts[p.PID]) > 1:
				say("%s: its labels are of process %d of one of several hosts, and are not used", g.Path, g.PID)
			default:
				fits = append(fits, g)
			}
		}
		apply(p, fits, say)
	}
	return slices.Sorted(maps.Keys(said))
}

// apply adds the labels that fit a process.
func apply(p *Process, fits []*Traced, say func(format string, args ...any)) {
	for _, g := range fits[min(1, len(fits)):] {
		if !maps.Equal(g.Labels, fits[0].Labels) {
			say("%s and %s have other labels of process %d: neither is used", fits[0].Path, g.Path, p.PID)
			return
		}
	}
	if len(fits) == 0 {
		return
	}
	g := fits[0]
	if own, ok := p.Labels[Rank]; ok && g.Labels[Rank] != "" && g.Labels[Rank] != own {
		say("%s: process %d has the rank %s there, and %s by itself, which counts", g.Path, p.PID, g.Labels[Rank], own)
		return
	}
	labels := maps.Clone(g.Labels)
	maps.Copy(labels, p.Labels)
	p.Labels = labels
}

// isSameHost reports whether two names may be of one host. One of them may have its domain.
func isSameHost(a, b string) bool {
	if a == "" || b == "" || a == b {
		return true
	}
	first, _, isLong := strings.Cut(a, ".")
	other, _, isOtherLong := strings.Cut(b, ".")
	return first == other && isLong != isOtherLong
}

// OfJob returns the labels of a process by its rank and the number of ranks in its job; -1: they are not known.
func OfJob(rank, size int64) map[string]string {
	labels := map[string]string{}
	for name, n := range map[string]int64{Rank: rank, World: size} {
		if n >= 0 {
			labels[name] = strconv.FormatInt(n, 10)
		}
	}
	return labels
}
