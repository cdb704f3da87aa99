// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// namingFlags are the flags of `unwindd profile` that have a meaning with --symbolize, beside the flags of all
// commands.
var namingFlags = map[string]bool{
	"symbolize": true, "exe": true, "module": true, "sysroot": true, "debug-dir": true, "buildid-dir": true, "debuginfod": true, "symbols": true, "max-unpacked": true,
}

// symbolizeProfile writes a profile with names.
func (f *profileFlags) symbolizeProfile(cmd *cobra.Command, args []string) error {
	if err := f.checkNaming(cmd, args); err != nil {
		return err
	}
	e, end, err := f.newEngine(f.globals, engine.Options{})
	if err != nil {
		return err
	}
	defer end()
	input, err := openInput(f.unnamed)
	if err == nil && input == nil {
		input, err = os.Open(f.unnamed)
	}
	if err != nil {
		return err
	}
	defer input.Close()
	s := newSymbolizer(symbolize.Options{Log: f.log()})
	defer s.Close()
	var named symbolize.NamedProfile
	err = f.write(func(w *writer) (err error) {
		o := symbolize.ProfileOptions{Finder: e.Finder(""), MaxUnpacked: uint64(f.maxUnpacked)}
		named, err = s.ProfileFile(cmd.Context(), w, input, f.unnamed, o)
		return err
	})
	if err != nil {
		return err
	}
	for _, problem := range named.Problems {
		messages.Printf("unwindd: %s\n", problem)
	}
	messages.Printf("unwindd: %s: frames with new names: %d, with names before: %d, without: %d\n", f.unnamed, named.Named, named.HadNames, named.Unnamed)
	return nil
}

// checkNaming refuses recordings, and flags that have no meaning with --symbolize.
func (f *profileFlags) checkNaming(cmd *cobra.Command, args []string) (err error) {
	if len(args) > 0 {
		return usageError{errors.New("--symbolize names its profile: expected no recording with it")}
	}
	if !f.names {
		return usageError{errors.New("--symbolize looks for names: expected no --symbols=false with it")}
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && !namingFlags[flag.Name] {
			err = usageError{fmt.Errorf("--%s has no meaning with --symbolize, which writes a profile in the format that it has", flag.Name)}
		}
	})
	if err != nil {
		return err
	}
	f.reads(f.unnamed)
	if err := f.targetFlags.check(); err != nil {
		return err
	}
	return f.notOverInput(f.output)
}
