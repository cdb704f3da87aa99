// SPDX-License-Identifier: Apache-2.0

// Command otlp has profiles named on their way through OpenTelemetry's collectors: a sender, a collector,
// `unwindd serve --otlp-listen`, and a collector that keeps what comes.
//
// Each profile has addresses in the libraries of this machine, and no names. Each address must arrive with a name,
// and each profile once, in each form of OTLP; nothing may be lost when the last collector, or unwindd, ends in
// between and starts again. Then it measures frames a second, from senders straight to unwindd.
//
//	go run ./otlp [-n N] [-frames N] [-libraries N] [-senders N] [-payload FILE]
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

var (
	count     = flag.Int("n", 40, "send `N` profiles in each form")
	frames    = flag.Int("frames", 2000, "each profile has `N` frames")
	libraries = flag.Int("libraries", 50, "frames are in the `N` largest libraries of this machine")
	senders   = flag.Int("senders", 4, "`N` senders at once, where it is measured")
	payload   = flag.String("payload", "", "a `file` with a request of a profiler, or with several, each with its size in four bytes before it: they are sent, too")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		cost.Exit("otlp", err)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "otlp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unwindd, err := cost.Unwindd("OTLP_UNWINDD", dir)
	if err != nil {
		return err
	}
	libs, err := findLibraries(*libraries)
	if err != nil {
		return err
	}
	c, err := newChain(unwindd, dir, libs)
	if err != nil {
		return err
	}
	defer c.end()
	var failures []error
	for _, step := range []struct {
		name string
		do   func(*chain) error
	}{
		{"each form", forms}, {"the last collector ends", sinkEnds}, {"unwindd is killed", serverEnds}, {"frames a second", measured}, {"payload", payloads},
	} {
		began := time.Now()
		err := step.do(c)
		how := "right"
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", step.name, err))
			how = "WRONG: " + err.Error()
		}
		fmt.Printf("%-24s %5.1f s  %s\n", step.name, time.Since(began).Seconds(), how)
	}
	if len(failures) > 0 {
		lines := strings.Split(c.log(), "\n")
		fmt.Println(strings.Join(lines[max(0, len(lines)-30):], "\n"))
	}
	return errors.Join(failures...)
}
