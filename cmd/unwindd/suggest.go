// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine"
)

// maxMistyped bounds the length of a mistyped name, maxDistance the distance of the name
// that was meant.
const (
	maxMistyped = 64
	maxDistance = 2
)

// noSuchCommand refuses arguments of a command that only has commands, and suggests one.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("there is no command %q of %s", args[0], cmd.CommandPath())
	meant := ""
	if len(args[0]) <= maxMistyped {
		cmd.SuggestionsMinimumDistance = maxDistance
		for _, name := range cmd.SuggestionsFor(args[0]) {
			if meant == "" || distance(args[0], name) < distance(args[0], meant) {
				meant = name
			}
		}
	}
	switch {
	case meant != "":
		line := strings.Join(append([]string{cmd.CommandPath(), meant}, args[1:]...), " ")
		return fmt.Errorf("%w; did you mean: %s", err, line)
	case !cmd.HasParent():
		if line := commandFor(args[0]); line != "" {
			return fmt.Errorf("%w; did you mean: unwindd %s %s", err, line, args[0])
		}
	}
	return err
}

// checkHelp has `unwindd help` refuse words that name no command.
func checkHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = usageArgs(func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil {
					return err
				}
				return noSuchCommand(found, rest)
			})
		}
	}
}

// commandFor returns the command that reads a file; "" where there is no file.
func commandFor(path string) string {
	if !isThere(path) {
		return ""
	}
	kind := engine.KindOf(path)
	return cmp.Or(kind.Command, "stack")
}

// nearestFlag returns the flag of a set whose name is nearest to a mistyped one; "" where
// none is near. All letters that are missing at the end count as one.
func nearestFlag(set *pflag.FlagSet, name string) string {
	if len(name) < 2 || len(name) > maxMistyped {
		return ""
	}
	nearest, least := "", min(maxDistance, (len(name)+1)/3)+1
	set.VisitAll(func(f *pflag.Flag) {
		d := distance(name, f.Name)
		if strings.HasPrefix(f.Name, name) {
			d = 1
		}
		if d < least && !f.Hidden {
			nearest, least = f.Name, d
		}
	})
	return nearest
}

// maxNeighbours bounds the files of a folder among which a mistyped one is looked for.
const maxNeighbours = 1000

// nearestFile returns the path of a file in the folder of a mistyped one whose name is nearest; ""
// where none is near.
func nearestFile(path string) string {
	dir, name := filepath.Split(path)
	if len(name) < 2 || len(name) > maxMistyped {
		return ""
	}
	folder, err := os.Open(cmp.Or(dir, "."))
	if err != nil {
		return ""
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(maxNeighbours)
	slices.Sort(names)
	nearest, least := "", min(maxDistance, (len(name)+1)/3)+1
	for _, n := range names {
		if d := distance(name, n); len(n) <= maxMistyped && !strings.HasPrefix(n, ".") && d < least {
			nearest, least = dir+n, d
		}
	}
	return nearest
}

// distance returns how many letters of one name must be left out, put in, replaced, or
// exchanged with the next one, to make the other.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
