// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// logsVariable names the folder where .ci/each has package testing write what tests open.
const logsVariable = "UNWINDD_TESTLOGS"

// tested is a package whose tests may be run.
type tested struct {
	path, dir string
	id        string
	isCaller  bool   // by system calls it may open what the log does not have
	why       string // it is run
	size      int64  // of the sources of its tests
}

// attached is a command with this process's output.
func attached(args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

// test runs go test for the packages that did not pass with the same inputs.
func test(files *checkout, kept *store, args []string) error {
	flags := args
	for len(flags) > 0 && strings.HasPrefix(flags[len(flags)-1], ".") {
		flags = flags[:len(flags)-1]
	}
	all, err := packages(files, kept.machine, flags, args[len(flags):])
	if err != nil {
		return err
	}
	var run []*tested
	for _, p := range all {
		r, why := kept.passed(p.id, files)
		if r != nil {
			fmt.Println(r)
			continue
		}
		p.why = why
		run = append(run, p)
	}
	// Large ones take longest: begun last, they would run alone at the end.
	slices.SortStableFunc(run, func(a, b *tested) int { return cmp.Compare(b.size, a.size) })
	fmt.Printf("%d of %d packages are tested\n", len(run), len(all))
	if len(run) == 0 {
		return nil
	}
	return testAll(files, kept, flags, run)
}

// testAll runs go test, and keeps the results of what passes as soon as it does.
func testAll(files *checkout, kept *store, flags []string, run []*tested) error {
	logs, err := os.MkdirTemp("", "unwindd-testlogs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(logs)
	args := slices.Concat([]string{"go", "test"}, flags)
	byPath := map[string]*tested{}
	for _, p := range run {
		fmt.Printf("run\t%s\t%s\n", p.path, p.why)
		args = append(args, p.path)
		byPath[p.path] = p
	}
	cmd := attached(args)
	cmd.Env = append(os.Environ(), logsVariable+"="+logs)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	var failed error
	for {
		line, err := lines.ReadString('\n')
		fmt.Print(line)
		if fields := strings.Fields(line); strings.HasPrefix(line, "ok  \t") && len(fields) > 2 && byPath[fields[1]] != nil {
			p := byPath[fields[1]]
			took, _ := time.ParseDuration(fields[2])
			failed = errors.Join(failed, keepTested(files, kept, logs, p, took))
		}
		if err == io.EOF {
			break
		} else if err != nil {
			failed = errors.Join(failed, err)
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return err
	}
	return failed
}

// keepTested keeps the result of a package, unless what it opened is not known.
func keepTested(files *checkout, kept *store, logs string, p *tested, took time.Duration) error {
	dir, err := filepath.Rel(files.root, p.dir)
	if err != nil {
		return err
	}
	r := &result{Name: p.path, When: time.Now(), Took: took, Inputs: map[string]string{}}
	inputs := []string{"plain " + dir, "path " + filepath.Join(dir, "testdata")}
	if p.isCaller {
		inputs = append(inputs, "set data")
	}
	found, err := filepath.Glob(filepath.Join(logs, strings.ReplaceAll(p.dir, "/", "+")+".[0-9]"))
	if err != nil || len(found) == 0 {
		return errors.Join(err, fmt.Errorf("%s: no log of what its tests open", p.path))
	}
	for _, path := range found {
		log, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		opened, err := files.opened(p.dir, log)
		if err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		inputs = append(inputs, opened...)
	}
	for _, name := range inputs {
		r.Inputs[name] = files.input(name)
	}
	return kept.keep(p.id, r)
}

// starters are programs that start others, which may read all sources.
var starters = []string{"go", "make", "sh", "bash", "dash", "fish", "zsh", "env", "unshare", "chroot", "timeout", "python3"}

// opened returns the inputs that a log of package testing has.
func (c *checkout) opened(dir string, log []byte) (inputs []string, err error) {
	text, isLog := bytes.CutPrefix(log, []byte("# test log\n"))
	if !isLog || len(text) > 0 && text[len(text)-1] != '\n' {
		return nil, errors.New("the log of what its tests open is not whole")
	}
	for line := range strings.Lines(string(text)) {
		op, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch op {
		case "getenv":
			if name != logsVariable {
				inputs = append(inputs, "getenv "+name)
			}
			continue
		case "chdir":
			dir = name
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		name = filepath.Clean(name)
		if c.has(name) {
			relative, err := filepath.Rel(c.root, name)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, "path "+relative)
		}
		inputs = append(inputs, c.started(op, name)...)
	}
	return inputs, nil
}

// started returns what the program may read that a test starts, if the file is one: package os
// logs it as one that is opened.
func (c *checkout) started(op, path string) []string {
	if op != "open" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil && c.has(path):
		return nil // it is not there, and is no program
	case err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0):
		return nil
	case c.has(path), slices.Contains(starters, filepath.Base(path)):
		return []string{"set sources"}
	}
	return []string{"set data"} // one of a temporary folder may have been a program
}

// listed is a package as go list says.
type listed struct {
	ImportPath, BuildID, Dir  string
	Deps                      []string
	TestGoFiles, XTestGoFiles []string
	DepOnly                   bool
}

// packages lists the packages that have tests, with their IDs.
func packages(files *checkout, machine string, flags, patterns []string) ([]*tested, error) {
	args := []string{"list", "-test", "-deps", "-export", "-json=ImportPath,BuildID,Dir,Deps,TestGoFiles,XTestGoFiles,DepOnly"}
	for _, f := range flags {
		if f == "-race" || strings.HasPrefix(f, "-tags") {
			args = append(args, f)
		}
	}
	cmd := exec.Command("go", append(args, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	byPath := map[string]*listed{}
	var named []*listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		byPath[p.ImportPath] = p
		if !p.DepOnly && len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 && !strings.Contains(p.ImportPath, " ") {
			named = append(named, p)
		}
	}
	described := describe(files, flags)
	var list []*tested
	for _, p := range named {
		code, err := code(byPath, p.ImportPath+".test")
		if err != nil {
			return nil, err
		}
		list = append(list, &tested{
			path: p.ImportPath, dir: p.Dir, id: id("test", p.ImportPath, code, described, machine),
			isCaller: slices.Contains(byPath[p.ImportPath+".test"].Deps, "golang.org/x/sys/unix"),
			size:     sizeOf(p.Dir, slices.Concat(p.TestGoFiles, p.XTestGoFiles)),
		})
	}
	return list, nil
}

// sizeOf returns the bytes of files of a folder.
func sizeOf(dir string, names []string) (size int64) {
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			size += info.Size()
		}
	}
	return size
}

// describe returns the flags, with the contents of files of the checkout for their names.
func describe(files *checkout, flags []string) string {
	var described []string
	for _, f := range flags {
		if path, err := filepath.Abs(f); err == nil && files.hashes[path] != "" {
			f = files.hashes[path]
		}
		described = append(described, f)
	}
	return strings.Join(described, " ")
}

// code returns the hash of a test's compiled code, of all its packages.
func code(byPath map[string]*listed, name string) (string, error) {
	p := byPath[name]
	if p == nil {
		return "", fmt.Errorf("go list names no %s", name)
	}
	var parts []string
	for _, d := range append([]string{name}, p.Deps...) {
		dep := byPath[d]
		if dep == nil || dep.BuildID == "" && d != "unsafe" {
			return "", fmt.Errorf("go list has no build ID of %s, which %s imports", d, name)
		}
		parts = append(parts, d+" "+dep.BuildID[strings.LastIndex(dep.BuildID, "/")+1:])
	}
	slices.Sort(parts)
	return id(parts...), nil
}
