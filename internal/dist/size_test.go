// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// A weight bounds what everybody who starts an executable pays for: its bytes, without
// symbols, its packages, and those of them that initialise something. All are the same on every
// machine. A commit that raises a bound says why.
type weight struct {
	command               string
	args                  []string // that end at once
	bytes                 int64
	packages, initialised int
	mayNotLink            []string // packages whose weight others must not pay for
}

var weights = []weight{
	{"unwindd", []string{"version"}, 53_050_000, 699, 352, []string{"github.com/nats-io/nats-server/v2/server"}},
	{"unwindd-plugins", nil, 19_100_000, 357, 169, []string{"github.com/hashicorp/go-plugin", "net/http/pprof"}},
}

func TestWeightOfExecutables(t *testing.T) {
	oracle.All(t)
	dir := t.TempDir()
	for _, w := range weights {
		t.Run(w.command, func(t *testing.T) {
			exe := filepath.Join(dir, w.command)
			build := oracle.With{Dir: "../..", Env: append([]string{"GOOS=linux", "GOARCH=amd64"}, fixed...)}
			build.Run(t, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", exe, "./cmd/"+w.command)
			info, err := os.Stat(exe)
			if err != nil {
				t.Fatal(err)
			}
			packages := strings.Fields(build.Run(t, "go", "list", "-deps", "./cmd/"+w.command))
			for _, name := range packages {
				for _, heavy := range w.mayNotLink {
					if name == heavy {
						t.Errorf("it links %s", name)
					}
				}
			}
			cmd := exec.Command(exe, w.args...)
			cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
			trace, _ := cmd.CombinedOutput() // one without arguments fails
			initialised := strings.Count("\n"+string(trace), "\ninit ")
			t.Logf("%d bytes, %d packages, %d initialise something", info.Size(), len(packages), initialised)
			for _, c := range []struct {
				what       string
				got, bound int64
			}{{"bytes", info.Size(), w.bytes}, {"packages", int64(len(packages)), int64(w.packages)}, {"packages that initialise something", int64(initialised), int64(w.initialised)}} {
				if c.got > c.bound || c.got < c.bound*9/10 {
					t.Errorf("%d %s, expected %d at most, and the bound is to follow what gets lighter", c.got, c.what, c.bound)
				}
			}
		})
	}
}
