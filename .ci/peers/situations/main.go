// SPDX-License-Identifier: Apache-2.0

// Command situations records programs of many languages and in many situations with perf, and
// prints for each the share of frames that have a name and of stacks that are complete, by
// unwindd and by perf. Neither reader is told anything: both run without options. It needs root,
// because it makes containers and records the kernel. A situation whose tools are missing is
// named and left out.
package main

import (
	"embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

//go:embed testdata
var sources embed.FS

func main() {
	kept := flag.String("keep", "", "keep programs and recordings in `FOLDER`")
	only := flag.String("only", "", "record the situations with these `NAMES` alone, separated by commas")
	flag.Parse()
	cost.Exit("situations", run(*kept, *only))
}

func run(kept, only string) error {
	dir, remove, err := cost.Folder(kept, "situations-")
	if err != nil {
		return err
	}
	defer remove()
	unwindd, err := cost.Unwindd("SITUATIONS_UNWINDD", dir)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "situation\tstacks\tnamed: unwindd\tperf\tcomplete: unwindd\tperf")
	for _, s := range situations {
		if only != "" && !slices.Contains(strings.Split(only, ","), s.name) {
			continue
		}
		line, err := s.compare(filepath.Join(dir, s.name), unwindd)
		if err != nil {
			line = "left out: " + strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " ")
		}
		fmt.Fprintf(table, "%s\t%s\n", s.name, line)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// compare makes the recording of a situation and reads it by both.
func (s *situation) compare(dir, unwindd string) (string, error) {
	for _, tool := range s.tools {
		if _, err := exec.LookPath(tool); err != nil {
			return "", err
		}
	}
	if err := copySources(dir); err != nil {
		return "", err
	}
	// perf keeps files that were sampled in a cache of the home: each situation has its own.
	script := "record() { HOME=$PWD perf record -q -o perf.data -F 199 \"$@\"; }\n" + s.script
	cmd := exec.Command("bash", "-e", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out[max(0, len(out)-300):])
	}
	ours, err := byUnwindd(dir, unwindd)
	if err != nil {
		return "", err
	}
	perfs, err := byPerf(dir)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d\t%s\t%s\t%s\t%s", ours.stacks, percent(ours.named, ours.frames), percent(perfs.named, perfs.frames),
		percent(ours.complete, ours.stacks), percent(perfs.complete, perfs.stacks)), nil
}

func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

func copySources(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	list, err := sources.ReadDir("testdata")
	if err != nil {
		return err
	}
	for _, f := range list {
		text, err := sources.ReadFile("testdata/" + f.Name())
		if err == nil {
			// A file of Go would be a package of this module.
			err = os.WriteFile(filepath.Join(dir, strings.TrimSuffix(f.Name(), ".txt")), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
