// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// causes are why the program crashes, with the function that is to be seen and how many of a thousand
// crash so.
var causes = []struct {
	name, function string
	share          int
}{{"divide", "average", 10}, {"abort", "check_totals", 90}, {"null", "parse_header", 900}}

// crashes are the cores of a program that crashed for three reasons, in any order.
func crashes(w *work) (*answer, error) {
	program, err := w.build("crashes.c", "gcc", "-O1", "-g", "-pthread")
	if err != nil {
		return nil, err
	}
	count := w.size(100, 1000)
	var order []int
	for i, c := range causes {
		order = append(order, slices.Repeat([]int{i}, c.share*count/1000)...)
	}
	random := rand.New(rand.NewPCG(uint64(w.seed), 6)) //nolint:gosec // no secret
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	expected := make([][]int, len(causes))
	folder := filepath.Join(w.dir, "cores")
	for i, cause := range order {
		dir := filepath.Join(folder, strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		cmd := exec.Command("bash", "-c", `ulimit -c unlimited; exec "$@"`, "bash", program, causes[cause].name)
		cmd.Dir = dir
		_ = cmd.Run() // it crashes
		if list, _ := filepath.Glob(filepath.Join(dir, "core*")); len(list) != 1 {
			return nil, fmt.Errorf("%s has the cores %v, expected one: see core(5) about where cores are put", dir, list)
		}
		expected[cause] = append(expected[cause], i)
	}
	args, want := []string{folder, "--label", `crash=cores/(\d+)/`}, planted{label: "crash", count: len(expected[0]), last: "handle", here: causes[0].function}
	a, err := w.compare(args, want)
	if err != nil {
		return a, err
	}
	if err := a.partition("crash", expected); err != nil {
		return a, err
	}
	crashed, err := w.compare(append(args, "--crashed"), want)
	if err != nil {
		return a, fmt.Errorf("--crashed: %w", err)
	}
	return a, crashed.partition("crash", expected)
}
