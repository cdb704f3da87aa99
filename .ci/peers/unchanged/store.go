// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keptFor is how long a result is of use: what tests reach by the network changes, too.
const keptFor = 14 * 24 * time.Hour

// store keeps what passed, in a folder of the user's cache directory.
type store struct {
	dir     string
	machine string // the hash of describeMachine
	anew    bool   // nothing that is kept is of use
}

// result is a run that passed.
type result struct {
	Name   string
	When   time.Time
	Took   time.Duration
	Inputs map[string]string // hashes by the names of inputs
}

func openStore(anew bool) (*store, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	machine := describeMachine()
	s := &store{filepath.Join(cache, "unwindd-ci", "passed"), id(machine), anew}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	// The difference of two such files says why nothing of an earlier run is of use.
	described := filepath.Join(s.dir, "machine-"+s.machine[:16])
	if err := s.write(described, []byte(machine)); err != nil {
		return nil, err
	}
	fmt.Println("machine\t" + described)
	files, err := os.ReadDir(s.dir)
	for _, f := range files {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > keptFor {
			_ = os.Remove(filepath.Join(s.dir, f.Name()))
		}
	}
	return s, err
}

// id returns the name of a result: the hash of everything that is known before the run.
func id(parts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", parts)))
}

// passed returns the result of a run whose inputs are still the same; nil if there is none. Why
// names an input that differs.
func (s *store) passed(id string, files *checkout) (r *result, why string) {
	if s.anew {
		return nil, "everything is run"
	}
	text, err := os.ReadFile(filepath.Join(s.dir, id))
	if err != nil {
		return nil, "its code, a tool or the environment is new"
	}
	r = new(result)
	if err := json.Unmarshal(text, r); err != nil || time.Since(r.When) > keptFor {
		return nil, "the result is damaged or old"
	}
	for name, sum := range r.Inputs {
		if files.input(name) != sum {
			return nil, name + " has changed"
		}
	}
	return r, ""
}

// keep keeps a result.
func (s *store) keep(id string, r *result) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return s.write(filepath.Join(s.dir, id), text)
}

// write writes a file, whole or not at all.
func (s *store) write(path string, content []byte) error {
	f, err := os.CreateTemp(s.dir, "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

// String returns the line of the log that is in place of a run.
func (r *result) String() string {
	return fmt.Sprintf("unchanged\t%s\tpassed %s in %s", r.Name, r.When.UTC().Format(time.DateTime), r.Took.Round(time.Second/10))
}

// command runs a command that did not pass with the same files.
func command(files *checkout, kept *store, args []string) error {
	set := "programs"
	if args[0] == "-all" {
		set, args = "all", args[1:]
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	name := strings.Join(args, " ")
	key := id("run", strings.TrimPrefix(dir, files.root), name, set, kept.machine)
	r, why := kept.passed(key, files)
	if r != nil {
		fmt.Println(r)
		return nil
	}
	fmt.Printf("run\t%s\t%s\n", name, why)
	r = &result{Name: name, When: time.Now(), Inputs: map[string]string{}}
	for _, input := range []string{"set " + set, "shared"} {
		r.Inputs[input] = files.input(input)
	}
	if err := attached(args).Run(); err != nil {
		return err
	}
	r.Took = time.Since(r.When)
	return kept.keep(key, r)
}
