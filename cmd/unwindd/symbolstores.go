// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine"
)

// symbolsVariable is the environment variable that names stores where --symbols does not.
const symbolsVariable = "UNWINDD_SYMBOLS"

// symbolFlags are the flags that name the sources of Breakpad symbol files, and of the code
// of dumps.
type symbolFlags struct {
	stores []string
	isSet  bool
	// names, where it is not nil, is set by the values false and true, which then are no
	// stores: it turns looking for names off and on.
	names *bool
}

func (f *symbolFlags) add(flags *pflag.FlagSet) {
	flags.Var(f, "symbols",
		"take PDB files, symbol files and code from the store at `URL|DIR`, or the symbols of one FILE.sym; may be repeated (default $UNWINDD_SYMBOLS; '' asks none)")
}

// String, Set and Type implement pflag.Value; Append, Replace and GetSlice pflag.SliceValue.
func (f *symbolFlags) String() string { return strings.Join(f.stores, " ") }

func (f *symbolFlags) Type() string { return "URL|DIR" }

func (f *symbolFlags) Set(text string) error {
	if f.names != nil {
		if is, err := strconv.ParseBool(text); err == nil {
			*f.names = is
			return nil
		}
	}
	f.isSet = true
	if text != "" {
		f.stores = append(f.stores, text)
	}
	return nil
}

// Append adds a store.
func (f *symbolFlags) Append(text string) error { return f.Set(text) }

// Replace sets the stores.
//
//nolint:unparam // pflag.SliceValue
func (f *symbolFlags) Replace(texts []string) error {
	f.stores, f.isSet = texts, true
	return nil
}

// GetSlice returns the stores.
func (f *symbolFlags) GetSlice() []string { return f.stores }

// origin is the flag or the variable that names the stores.
func (f *symbolFlags) origin() string {
	if f.isSet {
		return "--symbols"
	}
	return symbolsVariable
}

// addTo names the stores of the flags, else of UNWINDD_SYMBOLS, in downloads.
func (f *symbolFlags) addTo(d *engine.Downloads) {
	d.Stores.URLs = f.stores
	if !f.isSet {
		d.Stores.URLs = strings.Fields(os.Getenv(symbolsVariable))
	}
}
