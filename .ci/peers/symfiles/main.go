// SPDX-License-Identifier: Apache-2.0

// Command symfiles compares the symbol files that `unwindd symbols` writes with
// Breakpad's dump_syms', record by record, and the stacks that minidump_stackwalk makes
// of minidumps by the two. Its arguments are files with debug information, and minidumps
// (*.dmp) whose modules are at their paths. Without any it takes libc and programs that
// it compiles, and compares programs of macOS with the dump_syms in Rust. -details N lists N
// differences of each kind.
//
// UNWINDD_PEER_BREAKPAD is a folder with Breakpad's tools; without it they are fetched from
// the package minidump of npm. UNWINDD_PEER_DUMP_SYMS is the one in Rust; without it cargo makes it.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/breakpad"
	"github.com/unwindd/unwindd/.ci/peers/cost"
)

func main() {
	details := flag.Int("details", 0, "list `N` differences of each kind")
	flag.Parse()
	err := run(flag.Args(), *details)
	if flag.NArg() == 0 {
		err = errors.Join(err, runMacOS(*details))
	}
	cost.Exit("symfiles", err)
}

// peer is a folder for files, and the tools.
type peer struct {
	dir, unwindd, tools string
	rust                string // dump_syms in Rust
	all                 comparison
	stacks              tally
	macAll              macComparison
}

func run(args []string, details int) error {
	p, remove, err := newPeer()
	if err != nil {
		return err
	}
	defer remove()
	tallies := append(p.all.tallies(), &p.stacks)
	for _, t := range tallies {
		t.details = details
	}
	if p.tools, err = breakpad.Readers(); err != nil {
		return err
	}
	if len(args) == 0 {
		if args, err = p.programs(); err != nil {
			return err
		}
	}
	for _, path := range args {
		compare := p.records
		if strings.HasSuffix(path, ".dmp") {
			compare = p.walk
		}
		if err := compare(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return report(tallies)
}

// newPeer builds unwindd.
func newPeer() (p *peer, remove func(), err error) {
	dir, err := os.MkdirTemp("", "symfiles-")
	if err != nil {
		return nil, nil, err
	}
	p = &peer{dir: dir, stacks: tally{title: "stacks"}}
	if p.unwindd, err = cost.Build(dir); err != nil {
		_ = os.RemoveAll(dir)
	}
	return p, func() { _ = os.RemoveAll(dir) }, err
}

// runMacOS compares the symbol files of programs of macOS.
func runMacOS(details int) error {
	p, remove, err := newPeer()
	if err != nil {
		return err
	}
	defer remove()
	for _, t := range p.macAll.tallies() {
		t.details = details
	}
	if p.rust, err = rustTool(); err != nil {
		return err
	}
	programs, err := p.macPrograms()
	if err != nil {
		return err
	}
	for _, m := range programs {
		if err := p.macOS(m); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	fmt.Printf("%d programs of macOS\n", len(programs))
	return report(p.macAll.tallies())
}

// report prints the counts. Differences of kinds that are not known are an error.
func report(tallies []*tally) error {
	unexplained := 0
	for _, t := range tallies {
		t.print(os.Stdout)
		unexplained += t.unexplained()
	}
	if unexplained > 0 {
		return fmt.Errorf("%d differences have no known reason", unexplained)
	}
	return nil
}

// programs compiles the default files; libc comes with them.
func (p *peer) programs() (list []string, err error) {
	source, err := filepath.Abs("../../engine/symbolize/testdata/shapes.cc")
	if err != nil {
		return nil, err
	}
	for name, command := range map[string][]string{
		"gcc5": {"g++"}, "gcc4": {"g++", "-gdwarf-4"}, "gcc-types": {"g++", "-gdwarf-4", "-fdebug-types-section"},
		"gcc-lto": {"g++", "-flto"}, "clang5": {"clang++-22"}, "clang4": {"clang++-22", "-gdwarf-4"},
	} {
		to := filepath.Join(p.dir, name)
		if err := cost.Run(".", command[0], append(command[1:], "-O2", "-g", source, "-o", to)...); err != nil {
			return nil, err
		}
		list = append(list, to)
	}
	const libc = "/lib/x86_64-linux-gnu/libc.so.6"
	if _, err := os.Stat(libc); err == nil {
		list = append(list, libc)
	}
	return list, nil
}

// joined is a file with its separate debug file in one, unpacked: dump_syms does not look
// where debuggers do.
func (p *peer) joined(path string) (string, error) {
	to := filepath.Join(p.dir, "joined-"+filepath.Base(path), filepath.Base(path))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	id := ""
	if out, err := exec.Command("readelf", "-n", path).Output(); err == nil {
		_, rest, _ := strings.Cut(string(out), "Build ID: ")
		id, _, _ = strings.Cut(rest, "\n")
	}
	debug := path
	if len(id) > 2 {
		if at := "/usr/lib/debug/.build-id/" + id[:2] + "/" + id[2:] + ".debug"; isFile(at) {
			debug = at
		}
	}
	if debug == path {
		return path, nil
	}
	if err := cost.Run(".", "eu-unstrip", path, debug, "-o", to); err != nil {
		return "", err
	}
	return to, cost.Run(".", "objcopy", "--decompress-debug-sections", to)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// records compares what the two write of a file.
func (p *peer) records(path string) error {
	path, err := p.joined(path)
	if err != nil {
		return err
	}
	ours, err := symbols(p.unwindd, "symbols", path)
	if err != nil {
		return err
	}
	theirs, err := symbols(filepath.Join(p.tools, "dump_syms"), "-d", "-m", path)
	if err != nil {
		fmt.Printf("%s: dump_syms: %v\n", filepath.Base(path), err)
		return nil
	}
	if ours.module != theirs.module || ours.codeID != theirs.codeID {
		return fmt.Errorf("MODULE %s, %s; dump_syms %s, %s", ours.module, ours.codeID, theirs.module, theirs.codeID)
	}
	p.all.compare(filepath.Base(path), ours, theirs)
	return nil
}

// symbols reads the symbol file that a command prints.
func symbols(name string, args ...string) (*records, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return nil, err
	}
	return read(bytes.NewReader(out))
}
