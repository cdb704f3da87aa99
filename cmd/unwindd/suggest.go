// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine/service/job"
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
		return fmt.Errorf("%w; did you mean: %s %s", err, cmd.CommandPath(), meant)
	case !cmd.HasParent():
		if line := commandFor(args[0]); line != "" {
			return fmt.Errorf("%w; did you mean: unwindd %s %s", err, line, args[0])
		}
	}
	return err
}

// commandFor returns the command that reads a file; "" where there is no file.
func commandFor(path string) string {
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	head := firstBytes(path)
	switch {
	case len(head) < elfTypeEnd:
		return "stack"
	case strings.HasPrefix(string(head), "PERFILE2"):
		return "profile"
	case strings.HasPrefix(string(head), elf.ELFMAG) && elfType(head) != elf.ET_CORE:
		return "symbolize --obj"
	}
	return "stack"
}

// flagError makes the error of flags that cannot be parsed. An unknown name may be
// mistyped, or belong to a command that does not exist.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); len(args) > 0 && cmd.HasSubCommands() {
		return usageError{noSuchCommand(cmd, args)} // the flags are of that command
	}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) && errors.Is(err, job.ErrUsage) {
		return usageError{value.Unwrap()} // it names the flag itself
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usageError{err}
	}
	name := unknown.GetSpecifiedName()
	if letters := unknown.GetSpecifiedShortnames(); len(letters) > 1 {
		name, _, _ = strings.Cut(letters, "=") // -thread for --thread
	}
	if meant := nearestFlag(cmd.Flags(), name); meant != "" {
		err = fmt.Errorf("%w; did you mean: --%s", err, meant)
	}
	return usageError{err}
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
