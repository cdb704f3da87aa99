// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine/download"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbolstore"
)

// symbolsVariable is the environment variable that names stores where --symbols does not.
const symbolsVariable = "UNWINDD_SYMBOLS"

// symbolFlags say where Breakpad symbol files, and the code of dumps, come from.
type symbolFlags struct {
	stores []string
	isSet  bool
	// names, where it is not nil, is whether names are looked for at all: false and true are
	// no stores then.
	names *bool
	// isBounded is that of debuginfodFlags.
	isBounded bool
}

func (f *symbolFlags) add(flags *pflag.FlagSet) {
	flags.Var(f, "symbols",
		"take symbol files and code from the store at `URL|DIR`, or the symbols of one FILE.sym; may be repeated (default $UNWINDD_SYMBOLS; '' asks none)")
}

// String, Set and Type are those of pflag.Value.
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

// client asks the stores that the flags name, else those of UNWINDD_SYMBOLS; nil where
// neither names one. log, where it is not nil, is told what is asked. end closes it.
func (f *symbolFlags) client(log func(text string)) (client object.Remote, end func(), err error) {
	from, stores := "--symbols", f.stores
	if !f.isSet {
		from, stores = symbolsVariable, strings.Fields(os.Getenv(symbolsVariable))
	}
	if len(stores) == 0 {
		return nil, func() {}, nil
	}
	o := download.Options{
		Timeout: download.DefaultTimeout, Retries: download.DefaultRetries, Cache: symbolstore.CacheDir(os.Getenv), Log: log,
	}
	if f.isBounded {
		o.MaxFiles = -1
	}
	if isProgressShown() {
		o.Progress = (&downloads{}).show
	}
	c, err := symbolstore.New(stores, o)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("%s: %w", from, err)}
	}
	return c, c.Close, nil
}

// remotes are what is asked for files that are not here; end closes the two.
func remotes(d *debuginfodFlags, s *symbolFlags, log func(text string)) (remote, symbols object.Remote, end func(), err error) {
	remote, disconnect, err := d.remote(log)
	if err != nil {
		return nil, nil, nil, err
	}
	symbols, leave, err := s.client(log)
	if err != nil {
		disconnect()
		return nil, nil, nil, err
	}
	return remote, symbols, func() { disconnect(); leave() }, nil
}
