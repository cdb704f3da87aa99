// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// benchmarks are the benchmarks of Go packages: rows and walks, ours and delve's. The
// name of a peer's row ends in /delve, of ours in /unwindd.
var benchmarks = []struct{ dir, pattern string }{
	{".", "^Benchmark(Index|RowAt|Rows|Expression)$"},
	{"../../engine", "^Benchmark(Walk|RowCache)$"},
	{"../../locexpr", "^BenchmarkEvaluate$"},
}

// measurement is one benchmark in all rounds.
type measurement struct {
	name          string
	times         ratio // nanoseconds, by round
	bytes, allocs string
}

// benchLine is a line of go test -bench.
var benchLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op(.*)$`)

// measureEngine runs each test binary several times, one after the other, and writes the
// medians.
func (b *bench) measureEngine(ctx context.Context, w io.Writer) error {
	rounds, duration := 6, "100ms"
	if b.short {
		rounds, duration = 1, "1x"
	}
	binaries := make([]string, len(benchmarks))
	list := benchmarks
	if b.short {
		list = list[:1]
	}
	for i, p := range list {
		binaries[i] = filepath.Join(b.dir, fmt.Sprintf("bench%d.test", i))
		if err := cost.Run(p.dir, "go", "test", "-c", "-vet=off", "-o", binaries[i], "."); err != nil {
			return err
		}
	}
	var all []*measurement
	for round := range rounds {
		if ctx.Err() != nil {
			break
		}
		b.referee.progress("benchmarks, round %d of %d", round+1, rounds)
		for i, p := range list {
			cmd := exec.Command(binaries[i], "-test.run", "^$", "-test.bench", p.pattern, "-test.benchmem", "-test.benchtime", duration)
			cmd.Dir = p.dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", cmd, err, out)
			}
			all = addLines(all, filepath.Base(p.dir), string(out))
		}
	}
	writeMeasurements(w, all)
	return nil
}

// addLines adds what a round of a package printed.
func addLines(all []*measurement, pkg, out string) []*measurement {
	if pkg == "." {
		pkg = "beside delve"
	}
	for line := range strings.Lines(out) {
		m := benchLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		name := pkg + ": " + m[1]
		at := slices.IndexFunc(all, func(x *measurement) bool { return x.name == name })
		if at < 0 {
			at = len(all)
			all = append(all, &measurement{name: name})
		}
		ns, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			continue
		}
		all[at].times = append(all[at].times, ns)
		fields := strings.Fields(m[3])
		for i := 1; i < len(fields); i++ {
			switch fields[i] {
			case "B/op":
				all[at].bytes = fields[i-1]
			case "allocs/op":
				all[at].allocs = fields[i-1]
			}
		}
	}
	return all
}

// writeMeasurements writes medians and spreads, and what ours is of a peer's, round by
// round.
func writeMeasurements(w io.Writer, all []*measurement) {
	fmt.Fprint(w, "### Benchmarks of the packages\n\n| benchmark | median | smallest to largest | bytes | allocations | unwindd / it |\n|---|---|---|---|---|---|\n")
	for _, m := range all {
		ratioText := ""
		if before, peer := strings.CutSuffix(m.name, "/delve"); peer {
			for _, ours := range all {
				if ours.name == before+"/unwindd" && len(ours.times) == len(m.times) {
					var r ratio
					for i := range m.times {
						r = append(r, ours.times[i]/m.times[i])
					}
					slices.Sort(r)
					ratioText = r.String()
				}
			}
		}
		sorted := slices.Clone(m.times)
		slices.Sort(sorted)
		fmt.Fprintf(w, "| %s | %s | %s to %s | %s | %s | %s |\n", m.name, nanoseconds(sorted.median()), nanoseconds(sorted[0]), nanoseconds(sorted[len(sorted)-1]), m.bytes, m.allocs, ratioText)
	}
	fmt.Fprintln(w)
}

func nanoseconds(ns float64) string {
	switch {
	case ns >= 1e6:
		return number(ns/1e6) + " ms"
	case ns >= 1e3:
		return number(ns/1e3) + " µs"
	}
	return number(ns) + " ns"
}
