// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

func debianPython() (string, error) { return "/usr/bin/python3", nil }

// pyenvPython is the newest Python of the user's pyenv.
func pyenvPython() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	list, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "3.*", "bin", "python3"))
	if len(list) == 0 {
		return "", errAbsent
	}
	minor := func(path string) int {
		m := regexp.MustCompile(`/3\.(\d+)`).FindStringSubmatch(path)
		n, _ := strconv.Atoi(m[1]) // it is a number
		return n
	}
	return slices.MaxFunc(list, func(a, b string) int { return minor(a) - minor(b) }), nil
}

// errAbsent says that a job is left out.
var errAbsent = errors.New("it is not installed")

// spied matches the parts of py-spy's text that differ for equal stacks: IDs of processes and threads, and
// numbers in names.
var spied = regexp.MustCompile(`(?m)^(Process \d+: .*|Python v.*)\n|^(Thread )\S+( \((?:active|idle)[+a-z]*\)|)|\d+`)

// pySpy has py-spy dump each process, and groups the dumps as text: the comparison is to have the same
// groups.
func (w *work) pySpy(pids []int, late int, a *answer) error {
	if w.quick {
		return nil
	}
	program, err := pySpyProgram()
	if err != nil {
		if os.Getenv("CI") == "true" {
			return err
		}
		w.note("%s is not compared with py-spy: %v", w.name, err)
		return nil
	}
	groups := map[string][]int{}
	began := time.Now()
	for rank, pid := range pids {
		var out writer
		if _, err := (&cost.Command{Argv: []string{program, "dump", "--pid", strconv.Itoa(pid)}}).Of(&out); err != nil {
			return fmt.Errorf("py-spy: %w", err)
		}
		text := spied.ReplaceAllString(string(out), "$2")
		groups[text] = append(groups[text], rank)
	}
	w.note("%s: py-spy dumped %d processes one after the other in %v: %d groups of text", w.name, len(pids), time.Since(began).Round(time.Millisecond), len(groups))
	expected := make([][]int, 0, len(groups))
	for _, ranks := range groups {
		expected = append(expected, ranks)
	}
	if len(expected) != 2 {
		for text, ranks := range groups {
			w.note("ranks %v:\n%s", ranks, text)
		}
		return fmt.Errorf("py-spy's text has %d groups, expected 2: rank %d and the others", len(expected), late)
	}
	return a.partition("rank", expected)
}

// pySpyProgram is py-spy of PyPI, in the user's cache directory.
func pySpyProgram() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "unwindd-peers", "py-spy")
	program := filepath.Join(dir, "bin", "py-spy")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	out, err := exec.Command("python3", "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--target", dir, "py-spy==0.4.*").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("pip: %w\n%s", err, out)
	}
	return program, nil
}
